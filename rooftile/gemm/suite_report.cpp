#include "rooftile/gemm/suite_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/error.hpp"
#include "rooftile/machine/query.hpp"
#include "rooftile/machine/registry.hpp"

namespace rooftile {
namespace {

constexpr std::int64_t min_middle = 128, min_large = 2048;
constexpr std::size_t worst_count = 10;

/// Multiplies up what has a value.
class SpreadOf {
  public:
    void add(std::optional<double> value) {
        if (!value || *value <= 0) return;
        spread_.least = spread_.count == 0 ? *value : std::min(spread_.least, *value);
        logarithms_ += std::log(*value);
        ++spread_.count;
    }
    Spread spread() const {
        Spread s = spread_;
        if (s.count > 0) s.geomean = std::exp(logarithms_ / s.count);
        return s;
    }

  private:
    Spread spread_;
    double logarithms_ = 0;
};

/// What a copy reaches, else the datasheet's, of the machine that the record names.
void set_dram(SuiteReport& report) {
    Machine machine;
    try {
        machine = shipped_machine(report.record.machine_id);
    } catch (const RequestError&) {
        return;
    }  // a machine file of its own, not shipped: no roof is known here
    for (const char* key : {"dram.sustained_copy", "dram.sustained_read", "dram.bandwidth"}) {
        if (const auto rate = bandwidth(machine, key)) {
            report.dram_bytes_per_s = rate->value;
            report.dram_key = key;
            return;
        }
    }
}

ShapeFigures figures_of(const SuiteShape& shape, std::optional<double> dram_bytes_per_s) {
    ShapeFigures f;
    const bool ranked = shape.rank1() != nullptr;
    f.row = gemm_row(ranked ? *shape.rank1() : shape.first());
    const GemmSuiteRow* first = ranked ? &f.row : nullptr;
    if (!first || !first->time_us) {
        f.why_none = f.row.invalid.empty() ? "no row of rank 1" : f.row.invalid;
        return f;
    }
    const double us = *first->time_us;
    if (first->cublaslt_ratio) f.ratio = first->cublaslt_ratio;
    else if (first->cublaslt_best_us) f.ratio = *first->cublaslt_best_us / us, f.ratio_by_medians = true;
    if (dram_bytes_per_s) f.dram_share = first->compulsory_bytes / (us * 1e-6) / *dram_bytes_per_s;
    if (first->predicted_us) f.prediction_error = *first->predicted_us / us - 1;
    f.best_of_own = shape.best_of_own();
    f.confirmed = shape.confirmation() != nullptr;
    f.by_medians = shape.by_medians();
    return f;
}

bool is_of(const ShapeFigures& shape, const std::string& model) {
    return std::any_of(shape.row.layers.begin(), shape.row.layers.end(),
                       [&](const SuiteLayer& layer) { return layer.model == model; });
}

/// `model` empty: all.
ModelFigures model_figures(const std::vector<ShapeFigures>& shapes, const std::string& model) {
    ModelFigures out;
    out.model = model.empty() ? "all" : model;
    std::array<SpreadOf, m_class_count> ratios, shares;
    for (const ShapeFigures& shape : shapes) {
        if (!model.empty() && !is_of(shape, model)) continue;
        const auto c = static_cast<std::size_t>(m_class(shape.row.m));
        ClassFigures& figures = out.classes[c];
        ++figures.shapes;
        figures.without_result += !shape.why_none.empty();
        figures.losses += shape.ratio && *shape.ratio < 1;
        ratios[c].add(shape.ratio);
        shares[c].add(shape.dram_share);
    }
    for (std::size_t c = 0; c < m_class_count; ++c) {
        out.classes[c].ratio = ratios[c].spread();
        out.classes[c].dram_share = shares[c].spread();
    }
    return out;
}

std::vector<std::string> models_of(const std::vector<ShapeFigures>& shapes) {
    std::vector<std::string> models;
    for (const ShapeFigures& shape : shapes) {
        for (const SuiteLayer& layer : shape.row.layers) {
            if (std::find(models.begin(), models.end(), layer.model) == models.end())
                models.push_back(layer.model);
        }
    }
    return models;
}

void set_worst(SuiteReport& report) {
    for (std::size_t i = 0; i < report.shapes.size(); ++i) {
        const ShapeFigures& shape = report.shapes[i];
        if (shape.ratio && m_class(shape.row.m) != MClass::small) report.worst.push_back(i);
    }
    std::stable_sort(report.worst.begin(), report.worst.end(), [&](std::size_t x, std::size_t y) {
        return *report.shapes[x].ratio < *report.shapes[y].ratio;
    });
    if (report.worst.size() > worst_count) report.worst.resize(worst_count);
}

void set_launches(SuiteReport& report) {
    std::vector<LaunchPoint> points;
    for (const ShapeFigures& shape : report.shapes) {
        const GemmSuiteRow& row = shape.row;
        const auto theirs = shape.ratio && row.time_us ? std::optional(*shape.ratio * *row.time_us) : std::nullopt;
        points.push_back(
            {std::string(name_of(m_class(row.m))), row.time_us, row.predicted_us, shape.ratio, theirs, &row.variants});
    }
    report.launches = launch_figures(points);
}

void set_ranking_and_prediction(SuiteReport& report) {
    SpreadOf prediction;
    std::vector<double> errors;
    for (const ShapeFigures& shape : report.shapes) {
        if (shape.best_of_own && shape.row.plans > 1) {  // of one plan there is nothing to choose
            ++report.ranked;
            report.ranked_right += *shape.best_of_own <= 1 + rank1_tolerance;
            report.confirmed += shape.confirmed;
            report.by_medians += shape.by_medians;
        }
        if (!shape.prediction_error) continue;
        prediction.add(1 + *shape.prediction_error);
        errors.push_back(*shape.prediction_error);
    }
    report.prediction = prediction.spread();
    report.prediction_error = prediction_error(errors);
}

}  // namespace

MClass m_class(std::int64_t m) {
    return m < min_middle ? MClass::small : m < min_large ? MClass::middle : MClass::large;
}

std::string_view name_of(MClass which) {
    static constexpr std::string_view names[] = {"M < 128", "128 <= M < 2048", "M >= 2048"};
    return names[static_cast<std::size_t>(which)];
}

SuiteReport suite_report(SuiteRecord record, const Suite* suite) {
    SuiteReport report;
    const std::vector<SuiteShape> shapes = record.take_shapes();
    report.record = std::move(record);
    set_dram(report);
    for (const SuiteShape& shape : shapes) {
        report.shapes.push_back(figures_of(shape, report.dram_bytes_per_s));
        report.mode = shape.first().mode;
    }
    for (const std::string& model : models_of(report.shapes))
        report.models.push_back(model_figures(report.shapes, model));
    report.models.push_back(model_figures(report.shapes, ""));
    set_ranking_and_prediction(report);
    set_worst(report);
    set_launches(report);
    if (suite) report.missing = not_measured(*suite, shapes);
    return report;
}

std::vector<std::string> missed_bars(const SuiteReport& report) {
    std::vector<std::string> missed;
    for (const std::int64_t size : {4096, 8192}) {
        const auto found = std::find_if(
            report.shapes.begin(), report.shapes.end(),
            [&](const ShapeFigures& s) { return s.row.m == size && s.row.n == size && s.row.k == size; });
        const std::string name = fmt::format("{0}x{0}x{0}", size);
        if (found == report.shapes.end() || !found->ratio)
            missed.push_back(fmt::format("{}: no ratio to cuBLASLt; wanted 1.00", name));
        else if (*found->ratio < 1)
            missed.push_back(fmt::format("{}: {:.3f} x cuBLASLt; wanted 1.00", name, *found->ratio));
    }
    const auto mean_bar = [&](MClass which, const char* where, double wanted) {
        const Spread& s = report.models.back().classes[static_cast<std::size_t>(which)].ratio;
        if (s.count == 0)
            missed.push_back(fmt::format("{}: no ratio to cuBLASLt; wanted {:.2f}", where, wanted));
        else if (s.geomean < wanted)
            missed.push_back(
                fmt::format("{}: geometric mean {:.3f} x cuBLASLt over {} problems; wanted {:.2f}", where,
                            s.geomean, s.count, wanted));
    };
    mean_bar(MClass::large, "M >= 2048", 1.00);
    for (const ShapeFigures& s : report.shapes) {
        if (m_class(s.row.m) == MClass::large && s.ratio && *s.ratio < 0.95)
            missed.push_back(
                fmt::format("{}x{}x{}: {:.3f} x cuBLASLt; wanted 0.95", s.row.m, s.row.n, s.row.k, *s.ratio));
    }
    mean_bar(MClass::middle, "128 <= M < 2048", 0.97);
    if (report.ranked_right < 0.9 * report.ranked || report.ranked == 0)
        missed.push_back(
            fmt::format("rank 1 is within 3 % of the best of its own on {} of {} problems; wanted 90 %",
                        report.ranked_right, report.ranked));
    for (const ShapeFigures& s : report.shapes) {
        if (!s.why_none.empty())
            missed.push_back(fmt::format("{}x{}x{}: no result: {}", s.row.m, s.row.n, s.row.k, s.why_none));
        else if (!s.ratio && m_class(s.row.m) != MClass::small)
            missed.push_back(fmt::format("{}x{}x{}: no ratio to cuBLASLt", s.row.m, s.row.n, s.row.k));
    }
    if (!report.missing.empty())
        missed.push_back(fmt::format("{} problem{} of the suite not measured, the first {}",
                                     report.missing.size(), report.missing.size() == 1 ? "" : "s",
                                     report.missing.front()));
    return missed;
}

}  // namespace rooftile
