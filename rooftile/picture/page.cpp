#include "rooftile/picture/page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "rooftile/picture/markup.hpp"
#include "rooftile/picture/pictures.hpp"
#include "rooftile/report/number.hpp"

namespace rooftile {
namespace {

// Narrow screens first; a second column where there is room. Colours are the pictures'.
std::string page_style() {
    const auto variables = [](Theme theme) {
        std::string out;
        for (int i = 0; i < role_count; ++i) out += fmt::format("--{}:{};", name_of(Ink(i)), hex(color_of(Ink(i), theme)));
        return out;
    };
    return fmt::format(":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}color-scheme:dark}}}}", variables(Theme::light),
                       variables(Theme::dark))
           + role_style() + R"(
*{box-sizing:border-box}
body{margin:0 auto;max-width:90rem;padding:1rem;background:var(--ground);color:var(--ink);font:16px/1.45 system-ui,sans-serif}
h1{font-size:1.5rem}h2{font-size:1.25rem;border-top:2px solid var(--grid);padding-top:.8rem}h3{font-size:1.05rem;margin-bottom:.3rem}
a{color:var(--blue)}
code{font:.85rem/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.command{display:block;padding:.4rem .6rem;border:1px solid var(--grid);user-select:all}
.faint{color:var(--faint)}.warn{color:var(--orange)}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem}td,th{padding:.15rem .6rem .15rem 0;text-align:left;vertical-align:top}
td.n,th.n{text-align:right}td.n{white-space:nowrap}thead th{vertical-align:bottom}th[scope=row]{position:sticky;left:0;background:var(--ground)}
.columns{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));align-items:start}
figure{margin:0;border:1px solid var(--grid);padding:.5rem;min-width:0}figure svg{width:100%;height:auto;display:block}
figcaption{font-size:.85rem}
details{border-left:2px solid var(--grid);padding-left:.6rem;margin:.15rem 0}summary{cursor:pointer}
summary:focus-visible,a:focus-visible,.wide:focus-visible{outline:3px solid var(--orange);outline-offset:2px}
@media print{body{max-width:none}details::details-content{content-visibility:visible;display:block}figure{break-inside:avoid}}
)";
}

/// A number or a text of the document, in a form to be read; its value is the document's.
class Writer {
  public:
    explicit Writer(std::string id) : id_(std::move(id)) {}

    std::string value(const Json& value, const std::string& at, std::string_view unit = {}) const {
        if (value.is_null()) return "<span class=\"faint\">unknown</span>";
        const std::string text = shown(value, at, unit);
        if (!value.is_number()) return escaped_markup(text);
        return fmt::format("<data value=\"{}\" data-at=\"{}{}\">{}</data>", value.dump(), id_, at, escaped_markup(text));
    }
    /// Of an object's plain values, a row each; what it holds further is left out.
    std::string table(const Json& object, const std::string& at) const {
        std::string out = "<table>";
        for (const auto& [key, each] : object.items()) {
            if (each.is_object()) {
                for (const auto& [inner, part] : each.items())
                    if (part.is_primitive()) out += row(key + "." + inner, part, fmt::format("{}/{}/{}", at, key, inner));
            } else if (each.is_primitive()) out += row(key, each, fmt::format("{}/{}", at, key));
        }
        return out + "</table>";
    }
    const std::string& id() const { return id_; }

  private:
    static std::string shown(const Json& value, const std::string& at, std::string_view unit) {
        if (value.is_string()) return value.get<std::string>().empty() ? "none" : value.get<std::string>();
        if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
        if (!value.is_number()) return value.dump();
        const double number = value.get<double>();
        if (!unit.empty()) return input_text(number, unit);
        if (at.ends_with("_us") || at.ends_with("_us_low") || at.ends_with("_us_high")) return time_text(number);
        if (at.ends_with("_ns")) return time_text(number / 1e3);
        if (at.ends_with("_bytes")) return scaled_text(number, "B");
        return number_text(number);
    }
    std::string row(const std::string& key, const Json& value_of, const std::string& at) const {
        return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td></tr>", escaped_markup(key), value(value_of, at));
    }
    std::string id_;
};

std::string inputs_table(const Writer& w, const Json& inputs, const std::string& at) {
    if (inputs.empty()) return "";
    std::string out =
        "<div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>input</th><th class=\"n\">value</th><th>source</th></tr></thead>";
    for (std::size_t i = 0; i < inputs.size(); ++i)
        out +=
            fmt::format("<tr><td><code>{}</code></td><td class=\"n\">{}</td><td>{}</td></tr>", escaped_markup(text_at(inputs[i], "name")),
                        w.value(inputs[i].at("value"), fmt::format("{}/{}/value", at, i), text_at(inputs[i], "unit")),
                        escaped_markup(text_at(inputs[i], "source")));
    return out + "</table></div>";
}

/// A quantity, its value and what it means; unfolded, its equation and where its inputs are from.
std::string step_details(const Writer& w, const Json& step, const std::string& at, const Json* chosen = nullptr,
                         const std::string& chosen_at = {}) {
    const std::string value = w.value(step.at("value"), at + "/value", text_at(step, "unit"));
    // Of a word, such as an order of tiles, the step's number is what it was chosen by.
    const bool word = chosen && !chosen->is_number();
    return fmt::format("<details><summary><b>{}</b> = {} <span class=\"faint\">{}</span></summary><p><code>{}</code>{}</p>{}</details>\n",
                       escaped_markup(text_at(step, "quantity")), word ? w.value(*chosen, chosen_at) : value,
                       escaped_markup(text_at(step, "limit")), escaped_markup(text_at(step, "formula")), word ? " = " + value : "",
                       inputs_table(w, step.value("inputs", Json::array()), at + "/inputs"));
}

std::string derivation_details(const Writer& w, const Json& row, const std::string& at) {
    if (!row.contains("derivation") || row.at("derivation").empty()) return "";
    const Json& steps = row.at("derivation");
    std::string chosen, all;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const std::string quantity = text_at(steps[i], "quantity"), here = fmt::format("{}/derivation/{}", at, i);
        const bool parameter = row.contains("config") && row.at("config").is_object() && row.at("config").contains(quantity);
        if (parameter) chosen += step_details(w, steps[i], here, &row.at("config").at(quantity), at + "/config/" + quantity);
        else all += step_details(w, steps[i], here);
    }
    std::string out;
    if (!chosen.empty()) out += "<h3>Why each parameter</h3>" + chosen;
    return out
           + fmt::format("<details><summary>What they follow from: {} steps</summary>{}</details>\n",
                         std::count(all.begin(), all.end(), '\n'), all);
}

std::string figures(const std::vector<Picture>& pictures) {
    if (pictures.empty()) return "";
    std::string out = "<div class=\"columns\">";
    for (const Picture& p : pictures)
        out += fmt::format(
            "<figure>{}<figcaption><code class=\"command\">{}</code></figcaption>"
            "<script type=\"application/vnd.vegalite.v5+json\" data-picture=\"{}\">{}</script></figure>\n",
            svg_text(p, true), escaped_markup(p.command), p.id, [&] {
                // Data, which no browser runs; no text may end it.
                std::string text;
                for (const char c : json_text(vega_lite(p), -1)) c == '<' ? text += "\\u003c" : text += c;
                return text;
            }());
    return out + "</div>";
}

std::string texts(const Json& document, const char* key, const char* title) {
    if (!document.contains(key) || document.at(key).empty()) return "";
    std::string out = fmt::format("<h3>{}</h3><ul>", title);
    for (const Json& text : document.at(key))
        out += "<li>" + escaped_markup(text.is_string() ? text.get<std::string>() : text.dump()) + "</li>";
    return out + "</ul>";
}

/// A table of rows, by the keys that they have; nested values by their path.
std::string rows_table(const Writer& w, const Json& rows, const std::string& at, const std::vector<std::string>& keys) {
    std::string out = "<div class=\"wide\" tabindex=\"0\"><table><thead><tr>";
    for (const std::string& key : keys) {
        const std::string name = key.starts_with('/') ? key.substr(key.rfind('/') + 1) : key;
        out += fmt::format("<th class=\"n\">{}</th>", escaped_markup(name));
    }
    out += "</tr></thead>";
    for (std::size_t i = 0; i < rows.size(); ++i) {
        out += "<tr>";
        for (const std::string& key : keys) {
            const std::string path = key.starts_with('/') ? key : "/" + key;
            const Json::json_pointer pointer(path);
            out += fmt::format("<td class=\"n\">{}</td>",
                               rows[i].contains(pointer) ? w.value(rows[i].at(pointer), fmt::format("{}/{}{}", at, i, path)) : "");
        }
        out += "</tr>";
    }
    return out + "</table></div>";
}

// One function a kind of document: what stands between its pictures and its end.

std::string plan_section(const Writer& w, const Json& d) {
    if (d.contains("infeasible"))
        return fmt::format("<p class=\"warn\">No plan fits: {}</p>", escaped_markup(text_at(d.at("infeasible"), "message")));
    if (d.at("plans").empty()) return "<p>No plan.</p>";
    const Json& plan = d.at("plans").at(0);
    std::string out = "<h3>Plan 1</h3><div class=\"columns\"><div>" + w.table(plan.at("config"), "/plans/0/config") + "</div><div>"
                      + w.table(plan.at("prediction"), "/plans/0/prediction") + "</div><div>"
                      + w.table(plan.at("resources"), "/plans/0/resources") + "</div></div>";
    out += derivation_details(w, plan, "/plans/0");
    if (d.at("plans").size() > 1) {
        std::vector<std::string> keys = {"rank"};
        for (const auto& [key, value] : plan.at("config").items()) {
            const bool same = std::all_of(d.at("plans").begin(), d.at("plans").end(), [&, k = key, v = value](const Json& other) {
                return other.at("config").contains(k) && other.at("config").at(k) == v;
            });
            if (!same) keys.push_back("/config/" + key);
        }
        keys.insert(keys.end(), {"/prediction/time_us", "/prediction/tflops", "/prediction/bound"});
        out += "<h3>Runners-up, where they differ</h3>" + rows_table(w, d.at("plans"), "/plans", keys);
    }
    std::string wins;
    for (std::size_t i = 1; i < d.at("plans").size(); ++i) {
        if (!d.at("plans")[i].contains("counterfactuals")) continue;
        for (const Json& c : d.at("plans")[i].at("counterfactuals"))
            wins += fmt::format("<p>Plan {} wins if <code>{}</code> is {} {}, here {}.</p>", i + 1, escaped_markup(text_at(c, "key")),
                                text_at(c, "wins"), input_text(c.at("threshold").get<double>(), text_at(c, "unit")),
                                input_text(c.at("value").get<double>(), text_at(c, "unit")));
    }
    if (!wins.empty()) out += "<details><summary>What would let a runner-up win</summary>" + wins + "</details>";
    return out + "<h3>What the search left out</h3>" + w.table(d.at("rejected").at("reasons"), "/rejected/reasons");
}

std::string measurement_section(const Writer& w, const Json& d) {
    std::string out;
    for (std::size_t i = 0; i < d.at("rows").size(); ++i) {
        const Json& row = d.at("rows")[i];
        const std::string at = fmt::format("/rows/{}", i);
        out += fmt::format("<h3>{}</h3>",
                           escaped_markup(subject_of(d, row) + (text_at(row, "label").empty() ? "" : ": " + text_at(row, "label"))));
        if (!text_at(row, "invalid").empty()) out += fmt::format("<p class=\"warn\">{}</p>", escaped_markup(text_at(row, "invalid")));
        Json plain = Json::object();
        for (const auto& [key, value] : row.items())
            if (value.is_primitive()) plain[key] = value;
        out += "<div class=\"columns\"><div>" + w.table(plain, at) + "</div><div>"
               + w.table(row.value("verified", Json::object()), at + "/verified")
               + w.table(row.value("baselines", Json::object()), at + "/baselines") + "</div>";
        if (row.contains("config") && row.at("config").is_object()) out += "<div>" + w.table(row.at("config"), at + "/config") + "</div>";
        out += "</div>" + derivation_details(w, row, at);
    }
    return out;
}

std::string sweep_section(const Writer& w, const Json& d) {
    std::string out = "<h3>Figures</h3>"
                      + rows_table(w, d.at("figures"), "/figures",
                                   {"name", "problems", "ratio", "ratio_low", "ratio_high", "ratio_least", "/prediction_error/bias", "/prediction_error/mean",
                                    "/prediction_error/p95", "/prediction_error/max"});
    const std::string x = d.at("axes").at(0), y = d.at("axes").at(1);
    out +=
        "<h3>The worst</h3>" + rows_table(w, d.at("worst"), "/worst", {"name", "time_us", "baseline_us", "predicted_us", "ratio", "label"});
    return out
           + fmt::format(
               "<details><summary>All {} problems</summary>{}</details>", d.at("points").size(),
               rows_table(w, d.at("points"), "/points", {"name", x, y, "time_us", "baseline_us", "predicted_us", "ratio", "label"}));
}

std::string planned_section(const Writer& w, const Json& d) {
    return rows_table(w, d.at("rows"), "/rows",
                      {"/problem/op", "/problem/m", "/problem/n", "/problem/k", "rank", "/prediction/time_us", "/prediction/tflops",
                       "/prediction/bound", "/infeasible/message"});
}

std::string validation_section(const Writer& w, const Json& d) {
    std::string out;
    for (std::size_t i = 0; i < d.at("operations").size(); ++i) {
        const Json& operation = d.at("operations")[i];
        const std::string at = fmt::format("/operations/{}", i);
        Json plain = Json::object();
        for (const auto& [key, value] : operation.items())
            if (!value.is_array() && key != "ledger" && key != "space" && key != "pickers") plain[key] = value;
        out += fmt::format("<h3>{}</h3><p>{}</p>", escaped_markup(text_at(operation, "operation")),
                           escaped_markup(text_at(operation, "space")))
               + w.table(plain, at);
        out += fmt::format("<details><summary>All {} problems</summary>{}</details>", operation.at("rows").size(),
                           rows_table(w, operation.at("rows"), at + "/rows",
                                      {"/problem/op", "members", "best_us", "best", "plan_us", "plan_predicted_us", "plan", "regret"}));
    }
    return out;
}

std::string simulation_section(const Writer& w, const Json& d) {
    return "<h3>Orders of tiles</h3>"
           + rows_table(w, d.at("rows"), "/rows",
                        {"order", "group", "planned", "dram_bytes", "dram_a_bytes", "dram_b_bytes", "dram_c_bytes", "l2_hit_rate",
                         "both_hit_share"});
}

std::string profile_section(const Writer& w, const Json& d) {
    std::string out = fmt::format("<p><code>{}</code></p>", escaped_markup(text_at(d, "profiled")));
    for (std::size_t i = 0; i < d.at("devices").size(); ++i) {
        const Json& device = d.at("devices")[i];
        out += fmt::format("<h3>GPU {}: {}</h3>", device.at("index").dump(), escaped_markup(text_at(device, "name"))) + w.table(device, fmt::format("/devices/{}", i));
    }
    if (!d.at("savings").empty()) {
        out += "<h3>What would save most</h3><ol>";
        for (std::size_t i = 0; i < d.at("savings").size(); ++i) {
            const Json& saving = d.at("savings")[i];
            out += fmt::format("<li>{}: {}<code class=\"command\">{}</code></li>", w.value(saving.at("saved_us"), fmt::format("/savings/{}/saved_us", i)),
                               escaped_markup(text_at(saving, "what")), escaped_markup(text_at(saving, "command")));
        }
        out += "</ol>";
    }
    out += "<h3>Kernels</h3>" + rows_table(w, d.at("kernels"), "/kernels", {"short", "calls", "time_us", "share", "mean_us", "/launches/0/registers", "/launches/0/dynamic_shared_bytes"});
    std::vector<std::string> launch_keys = {"problem", "calls", "mean_us", "predicted_us", "ours_us", "possible_us", "least_bytes", "plan", "command", "why_not"};
    const auto has_counters = [](const Json& kernel) {
        return std::ranges::any_of(kernel.at("launches"), [](const Json& launch) { return launch.contains("counters"); });
    };
    if (std::ranges::any_of(d.at("kernels"), has_counters))
        for (const char* counter : {"dram_read_bytes", "dram_written_bytes", "l2_bytes", "tensor_share", "issue_share"})
            launch_keys.push_back(std::string("/counters/") + counter);
    std::string known;
    for (std::size_t i = 0; i < d.at("kernels").size(); ++i) {
        const Json& kernel = d.at("kernels")[i];
        known += fmt::format("<details><summary>{}</summary><p><code>{}</code></p>{}{}</details>\n", escaped_markup(text_at(kernel, "short")),
                             escaped_markup(text_at(kernel, "name")), w.table(kernel.at("decoded"), fmt::format("/kernels/{}/decoded", i)),
                             rows_table(w, kernel.at("launches"), fmt::format("/kernels/{}/launches", i), launch_keys));
    }
    out += "<details><summary>Each kernel's name, launches, and what they should take</summary>" + known + "</details>";
    return out + "<h3>Copies</h3>" + rows_table(w, d.at("copies"), "/copies", {"kind", "count", "bytes", "time_us"}) + "<h3>Ranges</h3>"
           + rows_table(w, d.at("ranges"), "/ranges", {"name", "count", "kernels", "host_us", "device_us"}) + "<details><summary>Calls of the driver</summary>"
           + rows_table(w, d.at("calls"), "/calls", {"name", "count", "failed", "time_us", "most_us"}) + "</details>";
}

std::string ways_section(const Writer& w, const Json& d) {
    std::string out = fmt::format("<p>{}</p>", escaped_markup(text_at(d, "meaning"))) + w.table(d.at("prediction"), "/prediction");
    out += rows_table(
        w, d.at("ways"), "/ways",
        {"name", "time_us", "kernel_us", "host_us", "roof_fraction", "launches", "error", "largest_difference", "right", "absent"});
    out += "<h3>Who decides</h3>"
           + rows_table(w, d.at("ways"), "/ways", {"name", "code_to_change", "coalescing", "shared_memory", "within_sm", "across_sms"});
    std::string kernels;
    for (const Json& way : d.at("ways")) {
        std::string names;
        for (const Json& name : way.at("kernels"))
            names += fmt::format("<li><code>{}</code></li>", escaped_markup(name.get<std::string>()));
        if (!names.empty()) kernels += fmt::format("<p>{}</p><ul>{}</ul>", escaped_markup(text_at(way, "name")), names);
    }
    if (!kernels.empty()) out += "<details><summary>Kernels of each</summary>" + kernels + "</details>";
    return out + "<h3>The same operator by Rooftile on other machines</h3>"
           + rows_table(w, d.at("elsewhere"), "/elsewhere", {"machine", "possible_us", "predicted_us", "plan", "why_not"});
}

std::string mlp_section(const Writer& w, const Json& d) {
    std::string out;
    for (std::size_t i = 0; i < d.at("curves").size(); ++i) {
        const Json& curve = d.at("curves")[i];
        const std::string at = fmt::format("/curves/{}", i), parameter = text_at(curve, "parameter");
        out += fmt::format("<h3>{}</h3>", escaped_markup(parameter)) + w.table(curve.at("fixed"), at + "/fixed");
        out += rows_table(w, curve.at("points"), at + "/points",
                          {parameter, "step_us", "kernel_us", "host_us", "predicted_us", "product_us", "pointwise_us", "gap_us", "tflops",
                           "host_bound", "why_not", "absent"});
        std::string changes;
        for (std::size_t k = 0; k < curve.at("changes").size(); ++k) {
            const Json& change = curve.at("changes")[k];
            const std::string own = fmt::format("{}/changes/{}", at, k);
            std::string reasons;
            for (const Json& reason : change.at("reasons"))
                reasons += (reasons.empty() ? "" : "; ") + escaped_markup(text_at(reason, "text"));
            changes += fmt::format("<li>{} to {}: {} times the time for {} times the work{}{}</li>",
                                   w.value(change.at("from"), own + "/from"), w.value(change.at("to"), own + "/to"),
                                   w.value(change.at("growth"), own + "/growth"), w.value(change.at("work_growth"), own + "/work_growth"),
                                   change.at("jump").get<bool>() ? ", a jump" : "", reasons.empty() ? "" : ": " + reasons);
        }
        if (!changes.empty()) out += "<p>What changes along it</p><ul>" + changes + "</ul>";
    }
    return out;
}

std::string units_section(const Writer& w, const Json& d) {
    return rows_table(w, d.at("kernels"), "/kernels", {"name", "meaning", "instructions", "special_functions", "registers", "threads"}) + "<h3>Times</h3>"
           + rows_table(w, d.at("points"), "/points",
                        {"kernel", "place", "x_bytes", "time_us", "predicted_us", "bound", "gbps", "/model/launch_us", "/model/store_us", "/model/latency_us",
                         "/model/bytes_us",
                         "/model/issue_us", "/model/special_us", "worst", "right"})
           + "<h3>What warps wait for, as a share of their cycles</h3>"
           + rows_table(w, d.at("points"), "/points",
                        {"kernel", "place", "x_bytes", "/counters/issue_active_percent", "/counters/special_percent", "/stall_shares/long_scoreboard",
                         "/stall_shares/short_scoreboard", "/stall_shares/wait", "/stall_shares/math_pipe_throttle", "/stall_shares/mio_throttle",
                         "/stall_shares/lg_throttle", "/stall_shares/not_selected", "/stall_shares/barrier"});
}

std::string layer_section(const Writer& w, const Json& d) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : d.at("cells").at(0).items()) {
        if (value.is_primitive()) keys.push_back(key);
        if (key == "gaps_us" || key == "bytes")
            for (const auto& [inner, part] : value.items()) keys.push_back(fmt::format("/{}/{}", key, inner));
    }
    std::string out = "<h3>The model</h3>" + w.table(d.at("model"), "/model") + "<h3>Steps</h3>" + rows_table(w, d.at("cells"), "/cells", keys);
    constexpr std::size_t most_unfolded = 100;
    for (std::size_t i = 0; i < std::min(d.at("cells").size(), most_unfolded); ++i) {
        const Json& cell = d.at("cells")[i];
        std::string set;
        for (const auto& [key, value] : cell.at("set").items()) set += fmt::format("{}={}, ", key, value.get<std::string>());
        out += fmt::format("<details><summary>{}batch {}, context {}, prefill {}</summary>", escaped_markup(set), cell.at("batch").dump(),
                           cell.at("context").dump(), cell.at("prefill").dump())
               + rows_table(w, cell.at("kernels"), fmt::format("/cells/{}/kernels", i),
                            {"name", "op", "problem", "time_us", "least_us", "bound", "/bytes/weights", "/bytes/cache", "/bytes/activations", "provenance", "plan"})
               + "</details>";
    }
    return out + "<h3>What a token needs of intermediates</h3>"
           + rows_table(w, d.at("room").at("tensors"), "/room/tensors", {"name", "written_by", "last_read_by", "bytes_per_token"});
}

/// Of what this page knows no more: plain values.
std::string other_section(const Writer& w, const Json& d) { return w.table(d, ""); }

struct SectionKind {
    std::string_view schema;
    std::string (*section)(const Writer&, const Json&);
};
constexpr SectionKind section_kinds[] = {
    {"rooftile/plan/1", plan_section},     {"rooftile/measurement/1", measurement_section}, {"rooftile/sweep/1", sweep_section},
    {"rooftile/plans/1", planned_section}, {"rooftile/validation/1", validation_section},   {"rooftile/simulation/1", simulation_section},
    {"rooftile/profile/1", profile_section}, {"rooftile/ways/1", ways_section},           {"rooftile/mlp/1", mlp_section},
    {"rooftile/units/1", units_section},     {"rooftile/layer/1", layer_section}};

/// The row that stands for a document beside others: plan 1, or the first measured one.
const Json* first_row(const Json& d) {
    const std::string schema = text_at(d, "schema");
    if (schema != "rooftile/plan/1" && schema != "rooftile/measurement/1") return nullptr;
    for (const char* list : {"plans", "rows"})
        if (d.contains(list) && d.at(list).is_array() && !d.at(list).empty() && d.at(list)[0].contains("config")
            && d.at(list)[0].at("config").is_object())
            return &d.at(list)[0];
    return nullptr;
}

/// A document beside others.
struct PageColumn {
    const PageDocument* document;
    const Writer* writer;
    const Json* row;
    std::string at;
};

std::vector<PageColumn> columns_of(const std::vector<PageDocument>& documents, const std::vector<Writer>& writers) {
    std::vector<PageColumn> columns;
    for (std::size_t i = 0; i < documents.size(); ++i)
        if (const Json* row = first_row(documents[i].document))
            columns.push_back({&documents[i], &writers[i], row, documents[i].document.contains("plans") ? "/plans/0" : "/rows/0"});
    return columns;
}

/// Parameters, times and pictures of all that have them, a column each; rows that differ come first.
std::string side_by_side(const std::vector<PageColumn>& columns) {
    std::vector<std::string> paths;
    const auto add = [&](const Json& object, const std::string& at) {
        for (const auto& [key, value] : object.items())
            if (value.is_primitive() && std::find(paths.begin(), paths.end(), at + "/" + key) == paths.end())
                paths.push_back(at + "/" + key);
    };
    for (const PageColumn& c : columns)
        if (c.row->contains("prediction")) add(c.row->at("prediction"), "/prediction");
        else
            for (const char* key : {"/time_us", "/predicted_time_us", "/tflops", "/mode"})
                if (std::find(paths.begin(), paths.end(), key) == paths.end()) paths.emplace_back(key);
    for (const PageColumn& c : columns) add(c.row->at("config"), "/config");
    std::string head = "<table><thead><tr><td></td>", apart, alike;
    for (const PageColumn& c : columns)
        head += fmt::format("<th class=\"n\"><a href=\"#{}\">{}</a></th>", c.writer->id(),
                            escaped_markup(subject_of(c.document->document, *c.row)));
    head += "</tr></thead>";
    for (const std::string& path : paths) {
        const Json::json_pointer pointer(path);
        const auto has = [&](const PageColumn& c) { return c.row->contains(pointer); };
        const bool differs = !std::all_of(columns.begin(), columns.end(), [&](const PageColumn& c) {
            return has(c) == has(columns[0]) && (!has(c) || c.row->at(pointer) == columns[0].row->at(pointer));
        });
        std::string& out = differs ? apart : alike;
        out += fmt::format("<tr{}><th scope=\"row\">{}</th>", differs ? " class=\"differs\"" : "",
                           escaped_markup(path.substr(path.rfind('/') + 1)));
        for (const PageColumn& c : columns)
            out += fmt::format("<td class=\"n\">{}</td>", has(c) ? c.writer->value(c.row->at(pointer), c.at + path) : "");
        out += "</tr>";
    }
    std::string out = "<h2 id=\"beside\">Side by side</h2>";
    out += apart.empty() ? "<p>Nothing of them differs.</p>"
                         : fmt::format("<div class=\"wide\" tabindex=\"0\">{}{}</table></div>", head, apart);
    if (!alike.empty())
        out += fmt::format("<details><summary>What is alike</summary><div class=\"wide\" tabindex=\"0\">{}{}</table></div></details>", head,
                           alike);
    std::vector<std::string> ids;
    std::map<std::string, std::vector<Picture>> pictures;
    for (const PageColumn& c : columns)
        for (Picture& p : pictures_of(c.document->document)) {
            if (!pictures.count(p.id)) ids.push_back(p.id);
            pictures[p.id].push_back(std::move(p));
        }
    for (const std::string& id : ids) out += figures(pictures[id]);
    return out;
}

/// `drawn`: its pictures stand beside others already.
std::string section(const PageDocument& document, const Writer& w, bool drawn) {
    const Json& d = document.document;
    const std::string schema = text_at(d, "schema");
    const Json* row = first_row(d);
    const std::string title = row || d.contains("problem") ? subject_of(d, row ? *row : Json::object())
                              : d.contains("machine") ? text_at(d, "operation") + " on " + text_at(d.at("machine"), "id")
                                                           : document.name;
    std::string out = fmt::format("<section id=\"{}\"><h2>{}</h2>\n", w.id(), escaped_markup(title));
    const Json context = d.value("context", Json::object());
    out += fmt::format("<p class=\"faint\">{}, from {}", escaped_markup(schema), escaped_markup(document.name));
    for (const char* key : {"gpu", "driver", "date", "version"})
        if (!text_at(context, key).empty()) out += fmt::format("; {} {}", key, escaped_markup(text_at(context, key)));
    out += fmt::format("</p><code class=\"command\">{}</code>\n", escaped_markup(text_at(context, "command")));
    if (!drawn) out += figures(pictures_of(d));
    auto write = other_section;
    for (const SectionKind& kind : section_kinds)
        if (kind.schema == schema) write = kind.section;
    return out + write(w, d) + texts(d, "notes", "Notes") + texts(d, "unknown", "Unknown numbers of the machine") + "</section>\n";
}

}  // namespace

std::string page_html(const std::vector<PageDocument>& documents, const std::string& command) {
    std::vector<Writer> writers;
    for (std::size_t i = 0; i < documents.size(); ++i) writers.emplace_back(fmt::format("d{}", i + 1));
    std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                      "<link rel=\"icon\" href=\"data:,\"><title>Rooftile: "
                      + escaped_markup(documents.size() == 1 ? documents[0].name : fmt::format("{} documents", documents.size())) + "</title><style>" + page_style()
                      + "</style></head><body><main>\n<h1>Rooftile</h1><p>Numbers are the documents' own. A <b>&#9656;</b> unfolds: the equation, its inputs and where each is "
                        "from. Pictures say more under the pointer and carry themselves as Vega-Lite specifications.</p>\n";
    if (documents.size() > 1) {
        out += "<nav><ul>";
        for (std::size_t i = 0; i < documents.size(); ++i)
            out += fmt::format("<li><a href=\"#d{}\">{}</a></li>", i + 1, escaped_markup(documents[i].name));
        out += "</ul></nav>\n";
    }
    const std::vector<PageColumn> columns = columns_of(documents, writers);
    const bool beside = columns.size() > 1;
    if (beside) out += side_by_side(columns);
    for (std::size_t i = 0; i < documents.size(); ++i) out += section(documents[i], writers[i], beside && first_row(documents[i].document));
    return out
           + fmt::format("<footer class=\"faint\"><p>Made by</p><code class=\"command\">{}</code></footer></main></body></html>\n",
                         escaped_markup(command));
}

}  // namespace rooftile
