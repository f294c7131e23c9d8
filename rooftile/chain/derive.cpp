#include "rooftile/chain/derive.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "rooftile/chain/derivation.hpp"
#include "rooftile/chain/flips.hpp"
#include "rooftile/chain/knobs.hpp"
#include "rooftile/chain/one_kernel.hpp"
#include "rooftile/chain/parts.hpp"
#include "rooftile/chain/traffic.hpp"
#include "rooftile/core/arena.hpp"
#include "rooftile/core/derivation.hpp"
#include "rooftile/error.hpp"
#include "rooftile/tiled/hardware.hpp"
#include "rooftile/tiled/two_products.hpp"
#include "rooftile/machine/set.hpp"

namespace rooftile {
namespace {

constexpr std::string_view kernel_arch = "sm_90";

constexpr Rule one_stage{"one_stage", "with one stage every block of weights is waited for; two fit"};

class Search {
  public:
    Search(std::shared_ptr<const Machine> machine, const Problem& problem, const ChainRequest& request)
        : machine_(std::move(machine)), any_(problem), p_(problem.own.as<ChainProblem>()), request_(request),
          hw_(chain_hardware(*machine_, p_.type, set_.unknown)) {
        set_.machine_id = machine_->id;
        set_.machine_name = machine_->name;
        set_.problem = problem;
    }

    PlanSet run() {
        // What takes least to plan may leave the others out where only the first is wanted.
        if (request_.first_only && wants(ChainForm::on_chip)) on_chip();
        if (wants(ChainForm::two_kernels) || wants(ChainForm::carry_over) || wants(ChainForm::persistent)) products();
        if (!request_.first_only && wants(ChainForm::on_chip)) on_chip();
        rank();
        if (request_.flips && !set_.plans.empty() && set_.plans.front().time_us)
            for (std::string& line : chain_flips(machine_, any_, request_, set_.plans.front().own.as<ChainPlan>().config.form))
                set_.notes.push_back("flips, " + std::move(line));
        return std::move(set_);
    }

  private:
    bool wants(ChainForm form) const { return !request_.form || *request_.form == form; }
    ChainL2 l2() const { return {std::int64_t(hw_.l2_bytes), int(hw_.l2_parts)}; }
    /// Whether traffic can be followed: L2 is known.
    bool followed() const { return !std::isnan(hw_.l2_bytes) && !std::isnan(hw_.sms); }

    void products() {
        first_ = planned(machine_, hw_, first_product(p_, true), first_product(p_, false));
        second_ = planned(machine_, hw_, second_product(p_, p_.residual), second_product(p_, false));
        if (!first_.plan || !second_.plan) {
            refusal_ = !first_.plan ? first_.why_not : second_.why_not;
            set_.rejected.add(Reason::instruction, !request_.form ? 3 : 1);
            return;
        }
        why_not_ = !first_.why_not.empty() ? "the first product: " + first_.why_not
                   : !second_.why_not.empty() ? "the second product: " + second_.why_not : std::string();
        predictors_ = part_predictors(*machine_, std::vector{*first_.plan, *second_.plan});
        simulates_ = followed();
        if (!request_.first_only || two_can_be_first()) {
            if (wants(ChainForm::two_kernels)) two_kernels();
            if (wants(ChainForm::carry_over)) carry_over();
        }
        if (wants(ChainForm::persistent)) persistent();
    }

    static constexpr ChainEffort few{2e4, 5e3, 2, 4}, some{2e5, 2e4};
    ChainEffort effort() const { return request_.coarse ? few : ChainEffort{}; }
    ChainTraffic traffic_of(const ChainProduct& first, const ChainProduct& second) const {
        return remembered(first, second, {p_.m}, effort(), [&] { return two_kernels_traffic(p_, first, second, l2(), effort()); });
    }
    /// Followed, unless it was before.
    template <class Follow>
    ChainTraffic remembered(const ChainProduct& first, const ChainProduct& second, const RowChunks& chunks, const ChainEffort& with, const Follow& follow) const {
        if (!request_.followed) return follow();
        std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", p_.m, p_.d, p_.ff, int(p_.act), p_.residual, hw_.l2_bytes, hw_.l2_parts, chunks.rows, chunks.in_room,
                                      with.steps, with.tiles, with.times_l2, with.waves);
        for (const ChainProduct* p : {&first, &second})
            key += fmt::format(", {} {} {} {} {} {} {} {} {} {} {} {}", p->tile_m, p->tile_n, p->tile_k, p->cluster_m, p->cluster_n, p->k_parts, p->clusters, p->late_clusters, p->skew,
                               int(p->order), p->group, p->reverse);
        const auto found = request_.followed->find(key);
        return found != request_.followed->end() ? found->second : request_.followed->emplace(std::move(key), follow()).first->second;
    }

    void two_kernels() {
        ChainPlan plan = begun(ChainForm::two_kernels, first_.product, second_.product);
        if (simulates_) plan.prediction.traffic = traffic_of(first_.product, second_.product);
        add(std::move(plan), why_not_);
    }

    /// The second product's tiles from the last to the first, in the order that is fastest with what the first one left.
    void carry_over() {
        std::optional<ChainPlan> best;
        std::optional<Plan> second;
        double fastest = INFINITY;
        std::string why_none;
        std::vector<ChainProduct> orders;
        for (const Order order : {second_.product.order, Order::row, Order::grouped}) {
            ChainProduct p = second_.product;
            p.order = order, p.reverse = true;
            constexpr int band = 8;
            if (order == Order::grouped && second_.product.order != Order::grouped) p.group = band;
            const bool seen = std::any_of(orders.begin(), orders.end(), [&](const ChainProduct& o) { return o.order == p.order && o.group == p.group; });
            if (!seen) orders.push_back(p);
        }
        for (const ChainProduct& product : orders) {
            const PlannedProduct turned = backwards(product);
            if (!turned.plan) {
                why_none = turned.why_not;
                set_.rejected.add(Reason::instruction);
                continue;
            }
            ChainPlan plan = begun(ChainForm::carry_over, first_.product, product);
            if (simulates_) plan.prediction.traffic = traffic_of(first_.product, product);
            const std::vector<Plan> parts = {*first_.plan, *turned.plan};
            const double seconds = simulates_ ? chain_time(*machine_, plan, parts, part_predictors(*machine_, parts)).seconds : unknown_number;
            if (best) set_.rejected.add(Reason::dominated);
            if (best && !(seconds < fastest)) continue;
            fastest = seconds;
            best = std::move(plan);
            second = *turned.plan;
        }
        if (best) add(std::move(*best), why_not_, &*first_.plan, &*second);
        else add(begun(ChainForm::carry_over, first_.product, orders.front()), "the second product does not go backwards: " + why_none);
    }

    /// The second product's plan once more, in that order and backwards.
    PlannedProduct backwards(const ChainProduct& product) const {
        Given given = second_product(p_, second_.with_epilogue && p_.residual);
        given.add("reverse", "on");
        return planned_again(machine_, hw_, *second_.plan, std::move(given), {{"order", name_of_order(product.order)}, {"group", product.group}});
    }

    /// Both products' tiles from one queue, all rows at once or in chunks: the fastest, or what takes about as long for less than half the bytes.
    /// Tiles, chunks and their room are searched together: by their queue alone, then with a coarse traffic, the best few with the exact one.
    void persistent() {
        struct Cut {
            ChainPlan plan;
            const OneKernelParts* parts;
            ProductTime first, second;
            QueueRun run;
            double seconds;  ///< of the traffic that it has; before that, no less than
            bool in_chunks(const ChainProblem& p) const { return plan.config.chunk_rows < p.m; }
        };
        const std::vector<OneKernelParts> options = parts_of_one_kernel(machine_, hw_, p_, first_, second_, {request_.coarse, request_.first_only ? fastest_of_others() * (1 + apart) : INFINITY});
        if (options.empty()) {
            set_.rejected.add(Reason::instruction);
            return;
        }
        const auto time = [&](Cut& cut, const ChainTraffic& traffic) {
            cut.seconds = known_or(persistent_time(hw_, p_, cut.plan.config, cut.first, cut.second, traffic, cut.run).seconds, INFINITY);
        };
        const auto follow = [&](Cut& cut, const ChainEffort& effort) {
            cut.plan.prediction.traffic = one_kernel_traffic(cut.plan, effort);
            time(cut, cut.plan.prediction.traffic);
        };
        ChainTraffic least;  // of any chunks
        least.tensors.push_back({"", p_.compulsory_bytes()});
        std::vector<Cut> cuts;
        const Machine no_dram = without_dram(*machine_);
        for (const OneKernelParts& parts : options) {
            const ChainPlan begun_with = begun(ChainForm::persistent, parts.first.product, parts.second.product);
            const std::vector<Plan> plans = {*parts.first.plan, *parts.second.plan};
            const std::vector<Predictor> predictors = part_predictors(*machine_, plans);
            const ProductTime first = time_of(*machine_, no_dram, plans[0], predictors[0]), second = time_of(*machine_, no_dram, plans[1], predictors[1]);
            if (request_.first_only && cannot_be_first(begun_with, first, second)) continue;
            for (const RowChunks& chunks : ways_to_cut(begun_with)) {
                Cut cut{begun_with, &parts, first, second, {}, INFINITY};
                cut.plan.config.chunk_rows = chunks.rows, cut.plan.config.room_chunks = chunks.in_room;
                // Of few rows of tiles: weights are read once a chunk.
                if (chunks.rows < p_.m)
                    for (ChainProduct& p : cut.plan.config.products) p.order = Order::column, p.group = 1;
                cut.run = queue_run(hw_, p_, cut.plan.config, first, second);
                if (!simulates_) cut.run.seconds = unknown_number;
                time(cut, least);
                cuts.push_back(std::move(cut));
            }
        }
        if (cuts.empty()) return;
        set_.rejected.add(Reason::dominated, std::int64_t(cuts.size() - 1));
        const auto moved = [](const Cut& cut) { return cut.plan.prediction.traffic.dram_bytes(); };
        if (simulates_) {
            constexpr std::size_t exact = 4;  // of the fastest, and of those that move the least
            std::ranges::stable_sort(cuts, {}, [&](const Cut& cut) { return cut.in_chunks(p_) ? cut.seconds : 0; });
            double fastest = request_.first_only ? fastest_of_others() * (1 + apart) : INFINITY;  // what is slower is not wanted
            std::vector<Cut> near;
            for (Cut& cut : cuts) {
                if (cut.in_chunks(p_) && cut.seconds > fastest * (1 + models_error)) break;
                follow(cut, request_.coarse ? few : some);
                fastest = std::min(fastest, cut.seconds);
                near.push_back(std::move(cut));
            }
            std::erase_if(near, [&](const Cut& cut) { return cut.seconds > fastest * (1 + models_error); });
            if (near.empty()) return;
            std::ranges::stable_sort(near, {}, &Cut::seconds);
            if (near.size() > exact) std::stable_sort(near.begin() + exact, near.end(), [&](const Cut& a, const Cut& b) { return moved(a) < moved(b); });
            if (near.size() > 2 * exact) near.erase(near.begin() + 2 * exact, near.end());
            cuts = std::move(near);
            if (!request_.coarse)
                for (Cut& cut : cuts) follow(cut, effort());
        }
        Cut* const fastest = &*std::ranges::min_element(cuts, {}, &Cut::seconds);
        Cut* chosen = fastest;
        for (Cut& cut : cuts)
            if (cut.seconds < fastest->seconds * (1 + apart) && 2 * moved(cut) < moved(*fastest) && moved(cut) < moved(*chosen)) chosen = &cut;
        const Plan &first = *chosen->parts->first.plan, &second = *chosen->parts->second.plan;
        const TwoProductsKernel kernel = two_products_kernel(*machine_, first, second, chunks_of(chosen->plan.config));
        chosen->plan.workspace_bytes = kernel.workspace_bytes, chosen->plan.threads = kernel.threads, chosen->plan.shared_bytes = kernel.shared_bytes;
        add(std::move(chosen->plan), kernel.why_not, &first, &second);
    }

    /// Whether its queue, nothing waited for from DRAM, is already more than rank() leaves the first plan. No traffic is followed then.
    bool cannot_be_first(const ChainPlan& plan, const ProductTime& first, const ProductTime& second) const {
        ChainConfig whole = plan.config;
        whole.chunk_rows = p_.m;
        // Without what DRAM takes longer of each.
        const auto on_chip = [](const ProductTime& t) { return ProductTime{t.on_chip_seconds, t.on_chip_seconds, 0}; };
        return persistent_time(hw_, p_, whole, on_chip(first), on_chip(second), {}).seconds > fastest_of_others() * (1 + apart);
    }
    /// Whether two launches can, with no more bytes than the chain has to move.
    bool two_can_be_first() const {
        const Machine no_dram = without_dram(*machine_);
        ChainTraffic least;
        least.tensors.push_back({"", p_.compulsory_bytes()});
        least.of_kernel = {p_.x_bytes() + p_.w1_bytes(), p_.w2_bytes() + p_.y_bytes()};
        const double seconds = two_kernels_time(hw_, p_, time_of(*machine_, no_dram, *first_.plan, predictors_[0]), time_of(*machine_, no_dram, *second_.plan, predictors_[1]), least).seconds;
        return !(seconds > fastest_of_others() * (1 + apart));
    }
    /// Seconds, as rank() counts them.
    double fastest_of_others() const {
        double fastest = INFINITY;
        for (const Plan& other : set_.plans)
            if (other.time_us) fastest = std::min(fastest, counted(other) * 1e-6);
        return fastest;
    }

    ChainTraffic one_kernel_traffic(const ChainPlan& plan, const ChainEffort& effort) const {
        const ChainProduct &first = plan.config.products[0], &second = plan.config.products[1];
        return remembered(first, second, chunks_of(plan.config), effort, [&] {
            return plan.config.chunk_rows >= p_.m ? two_kernels_traffic(p_, first, second, l2(), effort)
                                                  : persistent_traffic(p_, first, second, plan.config.chunk_rows, plan.config.room_chunks, l2(), effort);
        });
    }

    /// All rows at once; and where that is more than L2 has, by the room that H may take of it, by waves of the first product's tiles, and from
    /// the lowest chunks on by halves of powers of two, as many of them as have room in some times L2: more rows in room keep more CTAs busy, and fewer
    /// of H in L2.
    std::vector<RowChunks> ways_to_cut(const ChainPlan& plan) const {
        const std::int64_t unit = chunk_unit(plan.config.products[0], plan.config.products[1]);
        std::vector<RowChunks> ways;
        const auto offer = [&](double rows, int in_room) {
            const std::int64_t whole = std::max<std::int64_t>(std::llround(rows / double(unit)), 1) * unit, kept = std::max(double(whole), rows) >= double(p_.m) ? p_.m : whole;
            const auto same = [&](const RowChunks& c) { return c.rows == kept && c.in_room == in_room; };
            if (std::none_of(ways.begin(), ways.end(), same) && (kept < p_.m || ways.empty())) ways.push_back({kept, kept < p_.m ? in_room : 2});
        };
        const std::vector<int> rooms = request_.room_chunks ? std::vector{*request_.room_chunks} : std::vector{2, 3};
        if (request_.chunk_rows) {
            for (const int in_room : rooms) offer(double(*request_.chunk_rows), in_room);
            return ways;
        }
        ways.push_back({p_.m});
        if (!followed() || double(p_.h_bytes() + p_.x_bytes()) < hw_.l2_bytes) return ways;
        const double row_bytes = double(p_.ff + p_.d) * ChainProblem::element_bytes;
        const ChainProduct& first = plan.config.products[0];
        const double most_rows = 4 * hw_.l2_bytes * hw_.l2_parts / (double(p_.ff) * ChainProblem::element_bytes);
        const double wave_rows = double(first.clusters) / std::ceil(double(first.n) / first.tile_n) * first.tile_m;
        for (const int in_room : rooms) {
            for (const double share : {0.125, 0.25, 0.5}) offer(share * hw_.l2_bytes / row_bytes / in_room, in_room);
        }
        const std::vector<int> more = request_.room_chunks ? rooms : std::vector{2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48};
        for (const int in_room : more)
            for (const double waves : {1.0, 2.0}) offer(waves * wave_rows, in_room);
        for (double rows = double(unit); rows < double(p_.m); rows *= 2)
            for (const int in_room : more)
                for (const double part : {1.0, 1.5})
                    if (part * rows * in_room <= most_rows) offer(part * rows, in_room);
        return ways;
    }

    void on_chip() {
        if (std::string missing = missing_matrix_type(*machine_, chain_type_name(p_.type)); !missing.empty()) {
            set_.rejected.add(Reason::instruction);
            if (refusal_.empty()) refusal_ = std::move(missing);
            return;
        }
        std::optional<ChainPlan> best;
        double fastest = INFINITY;
        std::optional<ChainWall> nearest;
        for (const ChainTile& tile : tiles()) {
            if (const auto wall = wall_of(hw_, p_, tile)) {
                set_.rejected.add(wall->reason);
                if (!nearest || wall->needed / wall->available < nearest->needed / nearest->available) nearest = wall;
                continue;
            }
            ChainTile more = tile;
            more.stages = 2;
            if (!request_.exhaustive && !request_.stages && !tile.resident && tile.stages == 1 && !wall_of(hw_, p_, more)) {
                set_.rejected.add(one_stage);
                continue;
            }
            ChainPlan plan = begun(ChainForm::on_chip, {}, {});
            plan.config.tile = tile;
            const double seconds = on_chip_time(hw_, p_, tile, double(p_.compulsory_bytes())).time.seconds;
            if (best) set_.rejected.add(Reason::dominated);
            if (best && !(seconds < fastest)) continue;
            fastest = seconds;
            best = std::move(plan);
        }
        if (!best) {
            if (nearest && refusal_.empty())
                refusal_ = nearest->reason == Reason::instruction
                               ? fmt::format("form on_chip keeps rows of Y of at most 256 columns in registers, tiles of 64, 128 or 192 rows, blocks of 64 or 128 columns of H; d is {}", p_.d)
                               : fmt::format("form on_chip needs {:.0f} {} where {} has {:.0f}", nearest->needed,
                                             nearest->reason == Reason::registers ? "registers a thread" : "B of shared memory", machine_->id, nearest->available);
            if (refusal_.empty()) refusal_ = "form on_chip has tiles of 64, 128 or 192 rows, blocks of 64 or 128 columns of H and 1 to 4 stages";
            reason_ = nearest ? nearest->reason : Reason::instruction;
            return;
        }
        if (followed()) best->prediction.traffic = on_chip_traffic(p_, best->config.tile, std::int64_t(hw_.sms), l2(), effort());
        std::string why_not;
        if (machine_->arch != kernel_arch)
            why_not = fmt::format("sm90_chain needs wgmma, TMA and setmaxnreg of sm_90; this machine is {}",
                                  machine_->arch.empty() ? "of no known architecture" : machine_->arch);
        for (const char* feature : {"wgmma", "tma", "setmaxnreg"})
            if (why_not.empty() && machine_->lacks(feature))
                why_not = fmt::format(
                    "sm90_chain needs wgmma, TMA and setmaxnreg of sm_90; this machine lacks {}", feature);
        add(std::move(*best), why_not);
    }

    /// What the request leaves open of form on_chip. Two tiles of X where they fit; weights that stay are tried before those that stream.
    std::vector<ChainTile> tiles() const {
        std::vector<ChainTile> out;
        for (const bool resident : {true, false})
            for (const int tile_m : {64, 128, 192})
                for (const int tile_ff : {64, 128})
                    for (const int stages : {1, 2, 3, 4}) {
                        ChainTile tile{tile_m, tile_ff, stages};
                        tile.resident = resident;
                        if (resident) {  // a stage a block
                            const std::int64_t blocks = (p_.ff + tile_ff - 1) / tile_ff;
                            constexpr std::int64_t most_stages = 16;  // beyond any shared memory
                            if (stages > 1 || blocks > most_stages) continue;
                            tile.stages = int(blocks);
                        }
                        // Turns keep products of relu dense, by some 6 %; longer functions they keep waiting, silu's by 25 % (docs/facts.md 273).
                        const bool in_turns = tile_m > ChainTile::warpgroup_m && !resident && p_.act == ChainAct::relu;
                        tile.schedule = request_.schedule.value_or(in_turns ? Schedule::pingpong : Schedule::cooperative);
                        tile.x_stages = request_.x_stages.value_or(2);
                        if (!request_.x_stages && wall_of(hw_, p_, tile)) tile.x_stages = 1;
                        bool open = true;
                        ChainKnobs::each([&](const auto& knob) { open &= (request_.*knob.fixed).value_or(tile.*knob.value) == tile.*knob.value; });
                        if (open) out.push_back(tile);
                    }
        return out;
    }

    ChainPlan begun(ChainForm form, const ChainProduct& first, const ChainProduct& second) const {
        ChainPlan plan;
        plan.arch = machine_->arch;
        plan.problem = p_;
        plan.config.form = form;
        plan.config.products = {first, second};
        return plan;
    }

    /// `first` and `second`: the plans of the products, where they are not the best by themselves.
    void add(ChainPlan own, std::string why_not, const Plan* first = nullptr, const Plan* second = nullptr) {
        if (request_.buildable_only && !why_not.empty()) {
            set_.rejected.add(Reason::instruction);
            if (refusal_.empty()) refusal_ = why_not;
            return;
        }
        Plan plan;
        plan.operation = any_.operation;
        plan.problem = any_;
        plan.why_not = std::move(why_not);
        plan.buildable = plan.why_not.empty();
        plan.unknown = set_.unknown;
        const bool on_chip = own.config.form == ChainForm::on_chip, one = on_chip || own.config.form == ChainForm::persistent;
        if (!on_chip) {
            plan.parts = {first ? *first : *first_.plan, second ? *second : *second_.plan};
            plan.wires = {{{"X"}, {"W1"}, {"H"}}, {{"H"}, {"W2"}}};
            if (p_.residual) plan.wires[1].push_back({"X"});
            plan.wires[1].push_back({"Y"});
            for (std::size_t i = 0; i < 2; ++i) own.part_configs[i] = plan.parts[i].operation->config_record(plan.parts[i]);
        }
        resources(own, plan);
        ChainPrediction& out = own.prediction;
        const bool known = !out.traffic.tensors.empty();
        const ChainTime time = on_chip || known ? chain_time(*machine_, own, plan.parts, second ? part_predictors(*machine_, plan.parts) : predictors_) : ChainTime{};
        out.time_us = known_value(time.seconds * 1e6);
        if (out.time_us) out.tflops = p_.flops() / time.seconds / 1e12, out.bound = time.bound;
        out.dram_lower_bound_bytes = p_.compulsory_bytes();
        if (first_.bound_bytes && second_.bound_bytes) out.dram_sum_of_bounds_bytes = *first_.bound_bytes + *second_.bound_bytes;
        if (known) {
            out.dram_bytes = out.traffic.dram_bytes();
            out.l2_bytes = out.traffic.asked_bytes();
            if (out.traffic.steps > 0) out.both_hit_share = std::min(1.0, double(out.traffic.both_hits) / double(out.traffic.steps));  // grown as straight lines both may cross
        }
        plan.time_us = out.time_us;
        plan.bound = out.bound;
        const std::string kernel = on_chip ? "sm90_chain" : one ? "sm90_two_gemms" : find_as<std::string>(own.part_configs[0], "kernel").value_or("product");
        const WorkspaceState state = one ? WorkspaceState::zeroed : WorkspaceState::any;  // counters
        plan.launches.push_back({.kernel = kernel, .workspace_bytes = own.workspace_bytes, .before = state, .after = state});
        if (!one) plan.launches.push_back({.kernel = find_as<std::string>(own.part_configs[1], "kernel").value_or("product")});
        plan.derivation = Steps([machine = machine_, hw = hw_, own] { return chain_derivation(*machine, hw, own); });
        plan.own = Own::of(std::move(own));
        set_.plans.push_back(std::move(plan));
    }

    static std::optional<double> known_value(double x) { return std::isnan(x) ? std::nullopt : std::optional(x); }

    void resources(ChainPlan& own, const Plan& plan) const {
        if (own.config.form == ChainForm::persistent) return;  // its kernel has told
        if (own.config.form != ChainForm::on_chip) {
            own.workspace_bytes = arena_of(plan).bytes;
            return;
        }
        const Sm90ChainConfig k = kernel_config(p_, own.config.tile);
        const RoleRegisters r = role_registers(hw_, own.config.tile.consumer_warpgroups());
        own.workspace_bytes = chain_counter_bytes;
        own.threads = k.threads();
        own.shared_bytes = k.shared_bytes();
        own.accumulator_registers = k.accumulator_registers();
        own.producer_registers = known_count(r.producer);
        own.consumer_registers = known_count(r.consumer);
    }

    // A form that nobody can build yet must be ahead by more than the model errs.
    static constexpr double models_error = 0.05, apart = 0.002;
    static double counted(const Plan& plan) { return *plan.time_us * (plan.buildable ? 1 : 1 + models_error); }

    void rank() {
        // What has no time comes last.
        std::stable_sort(set_.plans.begin(), set_.plans.end(), [&](const Plan& a, const Plan& b) {
            if (a.time_us.has_value() != b.time_us.has_value()) return a.time_us.has_value();
            return a.time_us && counted(a) < counted(b) * (1 - 1e-6);
        });
        // Of those whose times the model does not tell apart the one goes first that moves the fewest bytes.
        const auto same = std::find_if(set_.plans.begin(), set_.plans.end(), [&](const Plan& plan) {
            return !plan.time_us || counted(plan) > counted(set_.plans.front()) * (1 + apart);
        });
        const auto moved = [](const Plan& plan) { return plan.own.as<ChainPlan>().prediction.dram_bytes.value_or(INT64_MAX); };
        std::stable_sort(set_.plans.begin(), same, [&](const Plan& a, const Plan& b) { return moved(a) < moved(b); });
        const auto kept = std::min(set_.plans.size(), std::size_t(request_.top));
        set_.rejected.add(Reason::dominated, std::int64_t(set_.plans.size() - kept));
        set_.plans.resize(kept);
        for (std::size_t i = 0; i < kept; ++i) set_.plans[i].rank = int(i + 1);
        for (const Plan& plan : set_.plans)
            if (const auto& parts = plan.own.as<ChainPlan>().prediction.traffic.parts; !parts.empty()) {
                const ChainPart& part = parts.front();
                set_.notes.push_back(fmt::format("L2 is followed for {} of {}'s {}; DRAM traffic grows from there as a straight line", part.followed, part.extent, part.whole));
                break;
            }
        if (request_.coarse) set_.notes.push_back("as one of many, L2 is followed for a small part of each: DRAM traffic may err by some percent");
        if (set_.plans.empty()) set_.refusal = Refusal{reason_, refusal_, std::nullopt, std::nullopt};
    }

    PlanSet set_;
    std::shared_ptr<const Machine> machine_;
    Problem any_;
    ChainProblem p_;
    ChainRequest request_;
    ChainHardware hw_;
    PlannedProduct first_, second_;
    std::vector<Predictor> predictors_;
    std::string why_not_, refusal_;
    Reason reason_ = Reason::instruction;
    bool simulates_ = false;
};

}  // namespace

std::string_view name_of(ChainForm form) {
    constexpr std::string_view names[] = {"two_kernels", "carry_over", "persistent", "on_chip"};
    return names[int(form)];
}

std::string_view name_of_order(Order order) {
    return knob_names(order)[std::size_t(order)];
}

Given first_product(const ChainProblem& p, bool with_act) {
    Given g(Given::Named::by_key);
    g.add("m", std::to_string(p.m));
    g.add("n", std::to_string(p.first_width()));
    g.add("k", std::to_string(p.d));
    g.add("type", std::string(chain_type_name(p.type)));
    // Of swiglu W1 has all gates above all ups; where no epilogue takes pairs of them, the function of the gates stands for both.
    const bool pairs = p.act == ChainAct::swiglu;
    if (pairs && with_act) g.add("pairs", "split"), g.add("epilogue", "h = silu(gate) * up");
    else if (pairs || with_act) g.add("epilogue", fmt::format("h = {}(acc)", pairs ? "silu" : name_of(p.act)));
    return g;
}

Given second_product(const ChainProblem& p, bool with_residual) {
    Given g(Given::Named::by_key);
    g.add("m", std::to_string(p.m));
    g.add("n", std::to_string(p.d));
    g.add("k", std::to_string(p.ff));
    g.add("type", std::string(chain_type_name(p.type)));
    if (with_residual) {
        g.add("epilogue", "y = acc + x");
        g.add("tensor", fmt::format("x:{}[M,N]", chain_type_name(p.type)));
    }
    return g;
}

std::vector<Predictor> part_predictors(const Machine& machine, std::span<const Plan> parts) {
    std::vector<Predictor> out;
    for (const Plan& part : parts) out.push_back(part.operation->predictor(machine, std::span(&part, 1)));
    return out;
}

ChainTime chain_time(const Machine& machine, const ChainPlan& plan, std::span<const Plan> parts, std::span<const Predictor> predictors) {
    std::vector<std::string> unknown;
    const ChainHardware hw = chain_hardware(machine, plan.problem.type, unknown);
    const ChainTraffic& traffic = plan.prediction.traffic;
    const bool known = !traffic.tensors.empty();
    if (plan.config.form == ChainForm::on_chip)
        return on_chip_time(hw, plan.problem, plan.config.tile, known ? double(traffic.dram_bytes()) : unknown_number).time;
    if (!known || parts.size() != 2) return {};
    const Machine no_dram = without_dram(machine);
    const auto bound_of = [](const Plan& part) { return part.bound.value_or(Bound::tensor); };
    const ProductTime first = time_of(machine, no_dram, parts[0], predictors[0]), second = time_of(machine, no_dram, parts[1], predictors[1]);
    if (plan.config.form == ChainForm::persistent) return persistent_time(hw, plan.problem, plan.config, first, second, traffic);
    ChainTime time = two_kernels_time(hw, plan.problem, first, second, traffic);
    if (time.bound != Bound::dram) time.bound = bound_of(first.seconds > second.seconds ? parts[0] : parts[1]);
    return time;
}

Predictor chain_predictor(const Machine& machine, std::span<const Plan> plans) {
    struct Timed {
        ChainPlan plan;
        std::vector<Plan> parts;
        std::vector<Predictor> predictors;
    };
    std::vector<Timed> timed;
    for (const Plan& plan : plans) timed.push_back({plan.own.as<ChainPlan>(), plan.parts, part_predictors(machine, plan.parts)});
    return [timed = std::move(timed)](const Machine& on) {
        std::vector<PredictedRun> runs;
        for (const Timed& t : timed) {
            const ChainTime time = chain_time(on, t.plan, t.parts, t.predictors);
            runs.push_back({time.seconds, time.clock_hz});
        }
        return runs;
    };
}

PlanSet derive_chain(std::shared_ptr<const Machine> machine, const Problem& problem, const ChainRequest& request) {
    return Search(std::move(machine), problem, request).run();
}

}  // namespace rooftile
