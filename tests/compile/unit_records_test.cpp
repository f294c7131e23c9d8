// Recorded documents of short kernels hold the predictions of today's model: what was measured stays, what follows from the machine and
// from the machine code is computed again. ROOFTILE_REGENERATE=1 rewrites that.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rooftile/machine/registry.hpp"
#include "rooftile/measure/unit_kernels.hpp"

namespace rooftile {
namespace {

std::vector<std::filesystem::path> recorded_units() {
    std::vector<std::filesystem::path> out;
    const std::filesystem::path folder = ROOFTILE_SOURCE_DIR "/bench/results/units";
    if (!std::filesystem::exists(folder)) return out;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (std::ifstream file(entry.path()); Json::parse(file).at("schema") == "rooftile/units/1") out.push_back(entry.path());
    return out;
}

Json predicted_again(const Json& recorded, const std::vector<UnitCode>& code) {
    const Machine machine = machine_by_id(recorded.at("machine").at("id").get<std::string>());
    UnitRun run;
    run.type = recorded.at("type") == "fp32" ? Type::fp32 : Type::bf16;
    run.code = code;
    for (const Json& point : recorded.at("points")) {
        UnitPoint p;
        for (const UnitWords& words : unit_words())
            if (words.id == point.at("kernel")) p.kind = words.kind;
        p.x_bytes = point.at("x_bytes").get<std::int64_t>(), p.from_dram = point.at("place") == "dram";
        run.points.push_back(p);
    }
    const Json again = unit_document(context_of("x"), machine, run);
    Json out = recorded;
    for (std::size_t i = 0; i < run.points.size(); ++i)
        for (const char* key : {"predicted_us", "bound", "model"}) out["points"][i][key] = again.at("points")[i].at(key);
    for (std::size_t i = 0; i < code.size(); ++i) out["kernels"][i]["special_functions"] = again.at("kernels")[i].at("special_functions");
    out["mean_error"] = json_number(unit_error(out, out.at("judged_from_us").get<double>()).value().mean);
    return out;
}

TEST(UnitRecords, HoldThePredictionsOfTodaysModel) {
    const auto files = recorded_units();
    if (files.empty()) GTEST_SKIP() << "skipped: no records here";
    const char* regenerate = std::getenv("ROOFTILE_REGENERATE");
    for (const std::filesystem::path& path : files) {
        SCOPED_TRACE(path.filename().string());
        std::ifstream file(path);
        const Json recorded = Json::parse(file);
        const Type type = recorded.at("type") == "fp32" ? Type::fp32 : Type::bf16;
        const std::string arch = machine_by_id(recorded.at("machine").at("id").get<std::string>()).arch;
        const std::vector<UnitCode> code = unit_code(compile_source(unit_source(type, arch)));
        if (recorded.at("context").at("nvrtc") != nvrtc().version)
            GTEST_SKIP() << "skipped: NVRTC " << nvrtc().version << " makes other machine code than the record's "
                         << recorded.at("context").at("nvrtc");
        for (std::size_t i = 0; i < code.size(); ++i) {
            EXPECT_EQ(recorded.at("kernels")[i].at("instructions"), code[i].counts.instructions) << unit_words()[i].id;
            EXPECT_EQ(recorded.at("kernels")[i].at("registers"), code[i].registers) << unit_words()[i].id;
        }
        const Json again = predicted_again(recorded, code);
        if (regenerate && *regenerate == '1') {
            std::ofstream(path) << again.dump(2) << '\n';
            continue;
        }
        ASSERT_EQ(recorded.at("points").size(), again.at("points").size());
        for (std::size_t i = 0; i < again.at("points").size(); ++i) {
            const Json &a = recorded.at("points")[i], &b = again.at("points")[i];
            EXPECT_EQ(a.at("bound"), b.at("bound")) << i;
            const double us = b.at("predicted_us").get<double>();
            EXPECT_NEAR(a.at("predicted_us").get<double>(), us, 1e-6 * us) << i;
        }
        EXPECT_NEAR(recorded.at("mean_error").get<double>(), again.at("mean_error").get<double>(), 1e-9);
        // The bar: a tenth in the mean, of every kernel, from 5 us on.
        for (const UnitWords& words : unit_words()) {
            Json own = again;
            std::erase_if(own["points"].get_ref<Json::array_t&>(), [&](const Json& point) { return point.at("kernel") != words.id; });
            EXPECT_LE(unit_error(own, 5).value().mean, 0.1) << words.id;
        }
    }
}

}  // namespace
}  // namespace rooftile
