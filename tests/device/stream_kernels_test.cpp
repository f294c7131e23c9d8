// Copies in every form on a GPU: every byte arrives, none behind the last is touched. The choice among reads.
#include "rooftile/measure/stream_kernels.hpp"

#include <algorithm>

#include "tests/device/device.hpp"

namespace rooftile {
namespace {

using StreamKernelsTest = DeviceTest;

TEST_F(StreamKernelsTest, EveryFormCopiesEveryByteAndNoOther) {
    const DeviceInfo device = Driver::instance().device(0);
    const MeasureKernels own(compile_measure_kernels(device.arch()));
    const StreamKernels streams(own, device.arch(), static_cast<int>(device.shared_per_sm_bytes));
    ASSERT_GT(streams.forms().size(), 17u);
    // Less than a piece; around the largest piece; more than every ring of the GPU holds at once, and odd.
    for (const std::int64_t bytes : {16, 4096 - 16, 131072, 131072 + 16, 100'000'016}) {
        std::vector<std::uint32_t> there(std::size_t(bytes / 4)), back(there.size() + 4);
        for (std::size_t i = 0; i < there.size(); ++i) there[i] = std::uint32_t(i * 2654435761u);
        const std::size_t size = there.size() * 4;
        const DeviceBuffer from(size), to(size + 16);
        copy_to_device(from.address(), there.data(), size);
        for (const StreamForm& form : streams.forms()) {
            const StreamOwner stream;
            fill_words(to.address(), 0xdeadbeef, back.size(), stream);
            streams.copy(stream, form, to.address(), from.address(), bytes);
            stream.synchronize();
            copy_to_host(back.data(), to.address(), back.size() * 4);
            EXPECT_TRUE(std::equal(there.begin(), there.end(), back.begin()))
                << name_of(form) << ", " << bytes << " B";
            EXPECT_EQ(back.back(), 0xdeadbeefu) << name_of(form) << ", " << bytes << " B";
        }
    }
}

TEST_F(StreamKernelsTest, AFormIsChosenOnce) {
    const DeviceInfo device = Driver::instance().device(0);
    const MeasureKernels own(compile_measure_kernels(device.arch()));
    const StreamKernels streams(own, device.arch(), static_cast<int>(device.shared_per_sm_bytes));
    StreamChoice choice(own, device.l2_bytes);
    constexpr std::int64_t bytes = 1 << 24, sets = 4;
    const DeviceBuffer from(bytes * sets), told(16);
    fill_bytes(from.address(), 0x5a, from.bytes(), nullptr);
    int launches = 0;
    const StreamLaunch read = [&](Stream stream, const StreamForm& form, std::int64_t set) {
        ++launches;
        ASSERT_LT(set, sets);
        streams.read(stream, form, from.address() + DevicePointer(set * bytes), bytes, told.address());
    };
    for (const Mode mode : {Mode::cold, Mode::sustained}) {
        launches = 0;
        const StreamForm first = choice.fastest(streams, false, bytes, mode, sets, read);
        const auto reading = [](const StreamForm& form) { return !form.last; };
        EXPECT_GE(launches, 4 * std::ranges::count_if(streams.forms(), reading));
        launches = 0;
        EXPECT_EQ(name_of(choice.fastest(streams, false, bytes, mode, sets, read)), name_of(first));
        EXPECT_EQ(launches, 0);
        RecordProperty(mode == Mode::cold ? "cold" : "sustained", name_of(first));
    }
}

}  // namespace
}  // namespace rooftile
