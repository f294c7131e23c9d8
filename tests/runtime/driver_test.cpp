// The driver's failures, told apart: against a libcuda.so.1 that this test writes, compiles and names in
// ROOFTILE_CUDA_PATH. Each case runs in a process of its own, since a process opens its driver once.
#include "rooftile/runtime/driver.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "rooftile/runtime/driver_table.hpp"

namespace rooftile {
namespace {

namespace fs = std::filesystem;

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
const char* const function_names[] = {
#define ONE(name) TEXT(name),
    ROOFTILE_DRIVER_FUNCTIONS(ONE)
#undef ONE
};

/// Every function answers with the environment's FAKE_<name>, 0 where it is not set; the few that the
/// cases need give something too.
std::string fake_source(const std::string& left_out) {
    std::string text =
        "#include <stdlib.h>\n#include <string.h>\n"
        "static int result(const char* n) { char k[99] = \"FAKE_\"; strcat(k, n); char* v = getenv(k);"
        " return v ? atoi(v) : 0; }\n";
    for (std::string name : function_names) {
        if (name == left_out) continue;
        std::string parameters = "void", body;
        if (name == "cuDriverGetVersion")
            parameters = "int* v", body = "char* t = getenv(\"FAKE_VERSION\"); *v = t ? atoi(t) : 13000;";
        if (name == "cuDeviceGetCount")
            parameters = "int* n", body = "char* t = getenv(\"FAKE_COUNT\"); *n = t ? atoi(t) : 1;";
        if (name == "cuGetErrorName")
            parameters = "int e, const char** s", body = "*s = e ? \"CUDA_ERROR_OF_TEST\" : 0;";
        if (name == "cuGetErrorString")
            parameters = "int e, const char** s", body = "*s = e ? \"as planned\" : 0;";
        if (name == "cuMemGetInfo_v2")
            parameters = "unsigned long* f, unsigned long* t", body = "*f = 10; *t = 100;";
        if (name == "cuDeviceGetName")
            parameters = "char* s, int n, int d", body = "strncpy(s, \"Test GPU\", n);";
        if (name == "cuDeviceGetAttribute")
            parameters = "int* v, int a, int d", body = "*v = a == 75 ? 8 : a == 76 ? 9 : 7;";
        text += "int " + name + "(" + parameters + ") { " + body + " return result(\"" + name + "\"); }\n";
    }
    return text;
}

struct FakeDriver : testing::Test {
    std::string folder;
    void SetUp() override {
        testing::FLAGS_gtest_death_test_style = "threadsafe";
        if (std::system("cc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "skipped: no C compiler";
        // A death test's second process inherits the folder that the first made.
        if (const char* made = getenv("FAKE_FOLDER")) {
            folder = made;
            return;
        }
        folder = testing::TempDir() + "rooftile-driver-XXXXXX";
        ASSERT_NE(mkdtemp(folder.data()), nullptr);
        setenv("FAKE_FOLDER", folder.c_str(), 1);
        make("");
    }
    void TearDown() override {
        unsetenv("FAKE_FOLDER");
        std::error_code ignored;
        if (!folder.empty()) fs::remove_all(folder, ignored);
    }
    void make(const std::string& left_out) {
        std::ofstream(folder + "/fake.c") << fake_source(left_out);
        const std::string command =
            "cc -w -shared -fPIC -o '" + folder + "/libcuda.so.1' '" + folder + "/fake.c'";
        ASSERT_EQ(std::system(command.c_str()), 0);
    }
    /// What using the driver ends in: the exit code and the line of an Error, 0 without one.
    template <class Use>
    [[noreturn]] void run(std::initializer_list<std::pair<const char*, const char*>> environment, Use use) {
        setenv("ROOFTILE_CUDA_PATH", folder.c_str(), 1);
        for (auto [name, value] : environment) setenv(name, value, 1);
        try {
            use();
            std::cerr << "no error\n";
            _exit(0);
        } catch (const Error& error) {
            std::cerr << error.what() << '\n';
            _exit(int(error.code()));
        }
    }
};

void start() { Driver::instance(); }
auto code(int value) { return testing::ExitedWithCode(value); }

TEST_F(FakeDriver, IsUsable) { EXPECT_EXIT(run({}, start), code(0), "no error"); }

TEST_F(FakeDriver, TooOld) {
    EXPECT_EXIT(run({{"FAKE_VERSION", "12040"}}, start), code(4), "supports CUDA 12.4; CUDA 13.0 is needed");
}

TEST_F(FakeDriver, LackingAFunctionIsTooOld) {
    make("cuKernelGetFunction");
    EXPECT_EXIT(run({{"FAKE_VERSION", "11080"}}, start), code(4), "CUDA 11.8 and lacks cuKernelGetFunction");
}

TEST_F(FakeDriver, NoDevice) {
    EXPECT_EXIT(run({{"FAKE_cuInit", "100"}}, start), code(4), "sees no GPU; check nvidia-smi");
    EXPECT_EXIT(run({{"FAKE_COUNT", "0"}}, start), code(4), "sees no GPU; check nvidia-smi");
}

TEST_F(FakeDriver, DoesNotStart) {
    EXPECT_EXIT(run({{"FAKE_cuInit", "803"}}, start), code(4),
                "cuInit says CUDA_ERROR_OF_TEST \\(as planned\\)");
}

TEST_F(FakeDriver, DevicesAreCountedAndDescribed) {
    EXPECT_EXIT(run({}, [] { Driver::instance().device(1); }), code(4),
                "there is no GPU 1: the driver sees 1");
    EXPECT_EXIT(run({}, [] { Context context(7); }), code(4), "there is no GPU 7");
    // Attributes 75 and 76 are the compute capability: the fake gives 8.9.
    EXPECT_EXIT(run({}, [] { Driver::instance().require_arch(0, "sm_90"); }), code(4),
                "GPU 0 \\(Test GPU\\) is sm_89; this kernel runs on sm_90 only");
}

TEST_F(FakeDriver, AFailingCallIsNamedWithItsNumbers) {
    EXPECT_EXIT(run({{"FAKE_cuMemAlloc_v2", "2"}}, [] { DeviceBuffer buffer(4096); }), code(6),
                "cuMemAlloc of 4096 B failed: 10 of 100 B are free");
    EXPECT_EXIT(run({{"FAKE_cuCtxSynchronize", "700"}}, [] { synchronize(); }), code(6),
                "cuCtxSynchronize failed: CUDA_ERROR_OF_TEST \\(as planned\\)");
    EXPECT_EXIT(run({{"FAKE_cuCtxGetDevice", "201"}}, [] { current_device(); }), code(2),
                "no CUDA context is current");
}

void launch_one() {
    int argument = 1;
    launch(Function(reinterpret_cast<CUfunc_st*>(8), "my_kernel"), Launch{.grid_x = 3, .block_x = 128},
           argument);
}

TEST_F(FakeDriver, ABlockingLaunchNamesTheKernelThatFailed) {
    EXPECT_EXIT(run({{"FAKE_cuStreamSynchronize", "700"}, {"ROOFTILE_LAUNCH_BLOCKING", "1"}}, launch_one),
                code(6), "the kernel started by cuLaunchKernelEx of my_kernel .grid 3x1x1, block 128");
    EXPECT_EXIT(run({{"FAKE_cuStreamSynchronize", "700"}}, launch_one), code(0), "no error");
    EXPECT_EXIT(run({{"FAKE_cuLaunchKernelEx", "1"}}, launch_one), code(6), "cuLaunchKernelEx of my_kernel");
}

}  // namespace
}  // namespace rooftile
