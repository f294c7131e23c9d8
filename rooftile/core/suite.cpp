#include "rooftile/core/suite.hpp"

#include <algorithm>

#include "rooftile/core/operation.hpp"
#include "rooftile/core/suite_reader.hpp"
#include "rooftile/machine/file_text.hpp"

namespace rooftile {

Suite Operation::suite(std::string_view text, std::string_view file_name) const {
    return SuiteReader(*this, file_name).read(text);
}

std::string name_of(const SuiteProblem& problem) {
    std::string name;
    for (const SuiteLayer& layer : problem.layers) name += (name.empty() ? "" : ", ") + layer.model + " " + layer.layer;
    return name + " " + problem.problem.operation->short_name(problem.problem);
}

Suite read_suite(const Operation& operation, const std::filesystem::path& path) {
    return operation.suite(read_small_file(path, suite_limits), path.string());
}

Suite filtered(Suite suite, std::string_view text) {
    std::erase_if(suite.problems, [&](const SuiteProblem& p) {
        return std::none_of(p.layers.begin(), p.layers.end(), [&](const SuiteLayer& layer) {
            return name_of(SuiteProblem{p.problem, {layer}, 0}).find(text) != std::string::npos;
        });
    });
    return suite;
}

}  // namespace rooftile
