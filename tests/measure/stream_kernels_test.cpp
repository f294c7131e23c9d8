#include "rooftile/measure/stream_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rooftile {
namespace {

using Kind = StreamForm::Kind;

TEST(StreamForms, TheBulkEngineIsOfHopperOn) {
    const auto rings = [](const char* arch, int shared) {
        const auto forms = stream_forms(arch, shared);
        return std::count_if(forms.begin(), forms.end(),
                             [](const StreamForm& f) { return f.kind == Kind::bulk; });
    };
    EXPECT_EQ(rings("sm_80", 233472), 0);
    EXPECT_EQ(rings("sm_90", 233472), 12);
    EXPECT_EQ(rings("sm_90", 32768), 0);  // none fits
    EXPECT_EQ(stream_forms("sm_80", 0).size(), 37u);
    EXPECT_EQ(stream_forms("sm_80", 0).front().kind, Kind::persistent);
}

TEST(StreamForms, EachHasANameAndFits) {
    std::set<std::string> names;
    for (const StreamForm& form : stream_forms("sm_90", 233472)) {
        EXPECT_TRUE(names.insert(name_of(form)).second) << name_of(form);
        EXPECT_LE(form.ctas_per_sm * form.piece * form.stages, 233472) << name_of(form);
    }
    EXPECT_EQ(name_of({Kind::pieces, 4, 512, 0, 0, 0}), "pieces of 4 x 16 B, 512 threads");
    EXPECT_EQ(name_of({Kind::pieces, 1, 256, 0, 0, 0, true}), "pieces of 1 x 16 B, 256 threads, through L1");
    EXPECT_EQ(name_of({Kind::pieces, 1, 256, 0, 0, 0, true, true}),
              "pieces of 1 x 16 B, 256 threads, through L1, reads go last");
    EXPECT_EQ(name_of({Kind::bulk, 0, 0, 16384, 4, 3}), "bulk ring of 4 x 16 KiB, 3 CTAs an SM");
}

// 4 x 512 x 16 B = 32768 B a CTA.
TEST(StreamGrid, CoversEveryByteOnce) {
    const StreamForm pieces{Kind::pieces, 4, 512, 0, 0, 0};
    EXPECT_EQ(stream_grid(pieces, 32768, 132), 1u);
    EXPECT_EQ(stream_grid(pieces, 32784, 132), 2u);
    EXPECT_EQ(stream_grid(pieces, 1 << 30, 132), 32768u);
    EXPECT_EQ(stream_grid(pieces, 16, 132), 1u);
    const StreamForm ring{Kind::bulk, 0, 0, 16384, 4, 3};
    EXPECT_EQ(stream_grid(ring, 1 << 30, 132), 396u);  // resident, and persistent
    EXPECT_EQ(stream_grid(ring, 5 * 16384 + 16, 132), 6u);
    EXPECT_EQ(stream_grid(ring, 16, 132), 1u);
}

}  // namespace
}  // namespace rooftile
