// How the values of a row are reduced.
#include "rooftile/fuse/device/rows.hpp"

#include <algorithm>

#include "kernels/fuse/arguments.hpp"
#include "rooftile/fuse/launch_model.hpp"

namespace rooftile {
namespace {

constexpr std::string_view accumulators[] = {"Sum", "SquareSum", "Max", "ArgMax", "Exponentials", "Moments"};

int words_of(const std::string& accumulator) {
    if (accumulator == "Moments") return 3;
    for (const std::string_view two : {"Exponentials", "Powers", "ArgMax", "Differences", "SumAndRest"})
        if (accumulator == two) return 2;
    return 1;
}

}  // namespace

/// A reduction that takes two joint ones where the row can be gone over again for nothing: the greatest value
/// before exponentials, the mean, nearly, before differences from it. Chunks of a ring are reduced while later ones arrive.
bool RowsText::in_two(int r) const {
    return !reload() && !ring() && reduced_in_two_rounds(w_.plan.problem, p_, r, c_.row_storage == RowStorage::shared);
}

RowsText::Joint RowsText::first_of(int r) const {
    const ProgramValue& v = w_.value(r);
    if (!in_two(r)) {
        const std::string_view own = only_for_means(p_, r)    ? "SumAndRest"
                                     : gives_shared_base(p_, r) ? "Powers"
                                                                : accumulators[int(v.reduction)];
        return {r, std::string(own), w_.values.name(r)};
    }
    if (v.reduction == Reduction::exponentials) return {r, "Max", w_.values.base(r) + "_top"};
    return {r, "Sum", w_.values.base(r) + "_sum"};
}

RowsText::Joint RowsText::second_of(int r) const {
    if (w_.value(r).reduction == Reduction::exponentials) return {r, "Sum", w_.values.base(r) + "_sum"};
    return {r, "Differences", w_.values.base(r) + "_apart"};
}

/// A 16-bit tensor's own values, whose greatest is found in their own type.
bool RowsText::takes_packs(const Joint& joint) const {
    const ProgramValue& v = w_.value(w_.value(joint.reduce).operands[0]);
    if (joint.accumulator == "Powers") return true;
    return joint.accumulator == "Max" && v.kind == ValueKind::load && bytes_of(v.element) == 2
           && c_.vector_width % 2 == 0;
}

void RowsText::reduction_pass(int pass, const std::vector<int>& reduces, const std::set<int>& known) {
    w_.line(0, "");
    line(0, "// Pass {}.", pass + 1);
    std::vector<Joint> first, second;
    for (int r : reduces) first.push_back(first_of(r));
    joint_reduction(first, known, [](const Joint&, const std::string& term) { return term; });
    for (int r : reduces)
        if (in_two(r)) second.push_back(second_of(r));
    if (!second.empty()) {
        for (const Joint& joint : second) centre(joint);
        joint_reduction(second, known, [&](const Joint& joint, const std::string& term) {
            const std::string value = term.find(' ') == term.npos ? term : "(" + term + ")";
            const std::string base = w_.values.base(joint.reduce);
            if (joint.accumulator == "Differences") return fmt::format("{} - {}_near", value, base);
            if (gives_shared_base(p_, joint.reduce)) return fmt::format("{}_base.power({})", base, term);
            return fmt::format("{}_powers.power({} - {}_base)", base, value, base);
        });
        for (const Joint& joint : second) row_value(joint);
    }
}

/// What the second joint reduction subtracts.
void RowsText::centre(const Joint& joint) {
    const std::string base = w_.values.base(joint.reduce);
    if (joint.accumulator == "Sum") {
        line(0, "// The greatest is known: now the sum of e^(value - greatest).");
        if (gives_shared_base(p_, joint.reduce)) line(0, "const PowerBase {0}_base({0}_top.greatest);", base);
        else {
            line(0, "const float {0}_base = Exponentials::reference({0}_top.greatest);", base);
            line(0, "const DifferencePowers {0}_powers({0}_base);", base);
        }
        return;
    }
    line(0, "// The mean is nearly known: now the differences from that, and their squares.");
    line(0, "const float {}_count = {};", base, off() ? "span.elements(0, vectors)" : "vectors * vector_width");
    line(0, "const float {0}_near = {0}_sum.total * ptx::reciprocal_approx(fmaxf({0}_count, 1.0f));", base);
}

void RowsText::row_value(const Joint& joint) {
    const std::string base = w_.values.base(joint.reduce), name = w_.values.name(joint.reduce);
    if (joint.accumulator == "Sum")
        line(0, "{} {} = {{{}_top.greatest, {}_sum.total}};",
             gives_shared_base(p_, joint.reduce) ? "Powers" : "Exponentials", name, base, base);
    else line(0, "const Moments {0} = {1}_apart.moments({1}_count, {1}_near);", name, base);
}

/// A thread has so few elements of a row that their sums need no mean of each vector: an outlier first costs as many times
/// fp32's last digit as they are.
bool RowsText::few_elements() const {
    const std::int64_t most = precision_of(w_.plan.problem) == Element::fp32 ? 256 : 2048;
    const std::int64_t threads = specialised() ? c_.reduction_threads : c_.threads_per_row;
    return p_.columns <= most * threads * c_.cluster;
}

/// Whether moments are first added up around 0, for results of 16 bits. Where that cancels, the row is gone over again: it
/// lies in its slots until the storing threads have its numbers. Where all threads do both, that saves nothing; where parts end
/// short, the second pass spills.
bool RowsText::plain(int r) const {
    const ProgramValue& v = w_.value(r);
    return v.reduction == Reduction::moments && reduces_in(v.pass).size() == 1 && few_elements()
           && precision_of(w_.plan.problem) != Element::fp32 && specialised() && whole();
}

void RowsText::joint_reduction(const std::vector<Joint>& joints, const std::set<int>& known,
                               const Term& term_of) {
    if (!plain(joints[0].reduce)) {
        reduce_once(joints, known, term_of, {"Running", true});
        return reduce_across_threads(joints);
    }
    line(0, "const Slots begun = slots;");
    line(0, "Moments {};", joints[0].name);
    line(0, "for (bool again = false;; again = true) {{");
    ++nested_;
    line(0, "if (!again) {{");
    ++nested_;
    reduce_once(joints, known, term_of, {"Plain", false});
    line(-1, "}} else {{  // hardly ever: around 0 they cancel");
    seldom_ = true;
    line(0, "slots = begun;");
    reduce_once(joints, known, term_of, {"Running", false});
    seldom_ = false;
    --nested_;
    line(0, "}}");
    reduce_across_threads(
        joints);  // written once: the text of a reduction is long, and the compiler would have it twice
    line(0, "if (again || !{}.cancelled()) break;", joints[0].name);
    --nested_;
    line(0, "}}");
}

void RowsText::reduce_once(const std::vector<Joint>& joints, const std::set<int>& known, const Term& term_of,
                           const Way& way) {
    std::vector<int> targets, all;
    const bool few = few_elements();
    const auto running = [few](const Joint& joint) {
        return joint.accumulator == "Powers" || (few && joint.accumulator == "Moments");
    };
    const auto counts_apart = [&](const Joint& joint) {
        return running(joint) && joint.accumulator == "Moments";
    };
    const auto accumulator_name = [&](const Joint& joint) {
        return joint.name + (running(joint) ? "_run" : "");
    };
    for (const Joint& joint : joints) {
        line(0, "{}{} {};", running(joint) ? way.kind : "", joint.accumulator, accumulator_name(joint));
        if (off() && counts_apart(joint)) line(0, "unsigned {}_outside = 0;", joint.name);
        all.push_back(w_.value(joint.reduce).operands[0]);
        if (!takes_packs(joint)) targets.push_back(all.back());
    }
    const Body add = [&](int depth, const std::vector<int>& loads) {
        keeps(depth, targets, known);
        shift_beside(depth, loads);
        for (const Joint& joint : joints)
            if (!takes_packs(joint)) w_.line(depth, "float {}_terms[vector_width];", joint.name);
        if (!targets.empty()) {
            w_.unroll();
            w_.line(depth, "for (int k = 0; k < vector_width; ++k) {{");
            const std::vector<std::string> terms = element(depth + 1, targets, loads, known);
            size_t next = 0;
            for (const Joint& joint : joints)
                if (!takes_packs(joint))
                    w_.line(depth + 1, "{}_terms[k] = {};", joint.name, term_of(joint, terms[next++]));
            w_.line(depth, "}}");
        }
        for (const Joint& joint : joints) {
            const int operand = w_.value(joint.reduce).operands[0];
            if (takes_packs(joint)) {
                // Of powers reach() has done so where the pack itself is what it saw.
                if (off() && (joint.accumulator == "Max" || beside(operand))) leave_out(depth, operand);
                w_.line(depth, "{}.add({});", accumulator_name(joint), pack_name(operand));
            } else if (off()) {
                w_.line(depth, "{}add_inside({}, {}_terms, span, at, {});",
                        counts_apart(joint) ? joint.name + "_outside += " : "", accumulator_name(joint),
                        joint.name, cuts());
            } else
                w_.line(depth, "{}.add({}_terms, at * vector_width);", accumulator_name(joint), joint.name);
        }
    };
    const auto reach_all = [&](int depth) {
        for (const Joint& joint : joints)
            if (joint.accumulator == "Powers") reach(depth, joint, accumulator_name(joint));
    };
    row_pass(all, known, {add, reach_all});
    for (const Joint& joint : joints)
        if (joint.accumulator == "Powers")
            line(0, "Powers {} = {}.powers();", joint.name, accumulator_name(joint));
        else if (running(joint))
            line(0, "{}{} = {}.moments(share_of({}, {}, {}) * vector_width{});",
                 way.declares ? "Moments " : "", joint.name, accumulator_name(joint),
                 ring() ? "mine" : "vectors", ring() ? stride_.lane : "team.lane()", stride_.step,
                 off() ? fmt::format(" - {}_outside", joint.name) : "");
}

/// What a pack has of neighbouring rows is not the greatest.
void RowsText::leave_out(int depth, int load) {
    w_.line(depth, "leave_out({}, span, at, {}, -infinity);", pack_name(load), cuts());
}

/// The greatest of an iteration's vectors, all of which are there.
void RowsText::reach(int depth, const Joint& joint, const std::string& accumulator) {
    const int operand = w_.value(joint.reduce).operands[0];
    line(depth, "float {}_top = -infinity;", w_.values.base(joint.reduce));
    vectors_head(depth);
    shift_beside(body() + depth + 1, {operand});
    if (off()) leave_out(body() + depth + 1, operand);
    line(depth + 1, "{0}_top = maximum({0}_top, greatest_of({1}));", w_.values.base(joint.reduce),
         pack_name(operand));
    line(depth, "}}");
    line(depth, "{}.reach({}_top);", accumulator, w_.values.base(joint.reduce));
}

/// As many accumulators at once as fit into the team's exchange.
void RowsText::reduce_across_threads(const std::vector<Joint>& joints) {
    std::string names;
    int words = 0;
    const auto together = [&] {
        line(0, "team.within_cta({});", names);
        if (c_.cluster > 1) line(0, "team.across_cluster({});", names);
        names.clear();
        words = 0;
    };
    for (const Joint& joint : joints) {
        const int mine = words_of(joint.accumulator);
        if (words + mine > fuse::reduction_words) together();
        names += (names.empty() ? "" : ", ") + joint.name;
        words += mine;
    }
    together();
}

}  // namespace rooftile
