// A PyTorch MLP at many sizes: `rooftile/mlp/1` from a script's report and the recording of its run, with what each step should take and
// why the time jumps from one size to the next.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"
#include "rooftile/profile/recorded.hpp"
#include "rooftile/report/json.hpp"
#include "rooftile/report/terminal.hpp"

namespace rooftile {

/// In the order of `mlp_parameters`.
using MlpPoint = std::array<std::int64_t, 4>;
inline constexpr std::array<const char*, 4> mlp_parameters = {"steps", "layers", "batch", "dim"};

/// Points that differ in one parameter, by it.
struct MlpCurve {
    std::size_t parameter = 0;
    std::vector<MlpPoint> points;
};

/// As given: a curve of the parameter with the most values for each choice of the others. Each parameter has one value at least.
std::vector<MlpCurve> mlp_curves(const std::array<std::vector<std::int64_t>, 4>& values);

/// `report`: what mlp_sweep.py wrote of the curves' points, one after the other.
Json mlp_document(const DocumentContext& context, const std::vector<MlpCurve>& curves, const std::string& type, const Json& report,
                  const std::vector<Recorded>& recordings, const std::shared_ptr<const Machine>& machine);

/// Predicts a recorded document's points again, by this program's model and that machine; a product's own prediction stays, for it needs
/// the launch. Throws nlohmann::json::exception where it is no such document.
void predict_mlp(Json& document, const Machine& machine);

/// Throws nlohmann::json::exception where it is no such document.
std::string mlp_text(const Json& document, const Terminal& terminal);

}  // namespace rooftile
