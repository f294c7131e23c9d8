#include "rooftile/measure/space_bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "rooftile/measure/problem_bench.hpp"
#include "rooftile/measure/timer.hpp"

namespace rooftile {
namespace {

constexpr double block_us = 1000;            // of the first timing
constexpr std::int64_t most_launches = 512;  // of a block
constexpr double long_us = 5000,
                 slow = 2;     // a launch so long and so much slower than the fastest is timed by itself
constexpr double near = 1.25;  // of the fastest: timed in further passes
constexpr double first_seconds = 1;  // no further pass after so long
constexpr std::size_t most_passes = 3;
constexpr std::size_t again_fastest = 8, settled_fastest = 4;
constexpr std::size_t most_compared = 16;  // results unlike all proved ones that are proved by themselves
constexpr double settled_from_us = 100;    // shorter kernels leave the power limit alone
constexpr std::size_t cold_rounds = 5, cold_again_rounds = 20;  // launches of each
constexpr double settled_to_us = 10'000;   // blocks of such launches outlast its control as they are

class SpaceBench {
  public:
    SpaceBench(Bench& bench, const DeclaredSpace& space, std::unique_ptr<Trial> trial, LedgerEntry& entry,
               std::vector<Timing>& timings)
        : bench_(bench),
          options_(bench.options()),
          space_(space),
          entry_(entry),
          tensors_(entry.problem.operation->tensors(entry.problem)),
          trial_(std::move(trial)),
          timings_(timings),
          launches_(entry.members.size()),
          references_(entry.members.size()) {}

    void run(const std::vector<CompiledOutcome>& kernels) {
        bench_.busy_from_now();
        load(kernels);
        make_sets();
        try_all();
        prove();
        if (options_.mode == Mode::cold) time_first_cold();
        else time_first();
        time_again();
        bench_.busy_until_now();
    }

  private:
    std::size_t count() const { return launches_.size(); }
    bool runs(std::size_t i) const { return bool(launches_[i]) && entry_.members[i].right != false; }
    void leave_out(std::size_t i, std::string why) {
        entry_.members[i].failed = std::move(why);
        launches_[i] = nullptr;
    }
    void check_interrupted() const {
        if (options_.interrupted && options_.interrupted())
            throw Error(ExitCode::interrupted, "interrupted while timing");
    }

    void load(const std::vector<CompiledOutcome>& kernels) {
        const Part part(timings_, "load");
        for (std::size_t i = 0; i < count(); ++i) {
            if (const auto* error = std::get_if<Error>(&kernels[i])) {
                leave_out(i, error->what());
                continue;
            }
            try {
                const CompiledKernel& kernel = std::get<CompiledKernel>(kernels[i]);
                kernel.load();
                launches_[i] = launch_of(kernel);
                references_[i] = &trial_->reference_of(kernel.plan());
            } catch (const Error& error) {
                rethrow_unless_of_one_problem(error);
                leave_out(i, error.what());
            }
        }
    }

    void make_sets() {
        const Part part(timings_, "buffers and fill");
        sets_.emplace(tensors_, sets_of_problem(TensorSets::set_bytes(tensors_), bench_.device().l2_bytes),
                      trial_->reference(), options_.seed);
    }

    /// One launch of each on the same inputs: what bits it leaves, and roughly how long it takes.
    void try_all() {
        const Part part(timings_, "first launches");
        DeviceBuffer sums(8 * count());
        fill_bytes(sums.address(), 0, sums.bytes(), stream_);
        tried_us_.assign(count(), 0);
        std::vector<std::pair<Event, Event>> events(count());
        for (std::size_t i = 0; i < count(); ++i) {
            if (!runs(i)) continue;
            sets_->poison_outputs(stream_, {0, 1});
            events[i].first.record(stream_);
            try {
                launches_[i](stream_, sets_->tensors(0));
            } catch (const Error& error) {
                rethrow_unless_of_one_problem(error);
                leave_out(i, error.what());
                continue;
            }
            events[i].second.record(stream_);
            sets_->add_fingerprints(bench_.kernels(), stream_, sums.address() + 8 * i, {0, 1});
        }
        stream_.synchronize();
        bits_.resize(count());
        copy_to_host(bits_.data(), sums.address(), sums.bytes());
        for (std::size_t i = 0; i < count(); ++i)
            if (runs(i)) tried_us_[i] = elapsed_us(events[i].first, events[i].second);
    }

    /// Proves by the reference; each member with the same bits as one of `members` is as right as that is.
    void prove(const std::vector<std::size_t>& members) {
        if (members.empty()) return;
        std::vector<TensorLaunch> launches;
        std::vector<const Reference*> references;
        for (const std::size_t i : members) launches.push_back(launches_[i]), references.push_back(references_[i]);
        constexpr double results_share = 0.25;
        const auto [verified, fingerprints] =
            verify_launches(bench_.kernels(), references, tensors_, launches, share_of_free(results_share), options_.seed, options_.cases);
        for (std::size_t k = 0; k < members.size(); ++k) {
            const bool right = verified[k].ok();
            LedgerMember& member = entry_.members[members[k]];
            member.right = right;
            if (!right) member.failed = verified[k].failure;
            if (right && fingerprints[k]) proved_.insert(*fingerprints[k]);
        }
        for (std::size_t i = 0; i < count(); ++i)
            if (runs(i) && proved_.count(bits_[i]) > 0) entry_.members[i].right = true;
    }

    /// The kept and the picked ones; then one of each kind of bits that none of them has, the commonest first.
    void prove() {
        const Part part(timings_, "verify");
        std::vector<std::size_t> named;
        for (std::size_t i = 0; i < count(); ++i)
            if (runs(i) && is_named(i)) named.push_back(i);
        prove(named);
        std::map<std::uint64_t, std::vector<std::size_t>> unlike;
        for (std::size_t i = 0; i < count(); ++i)
            if (runs(i) && !entry_.members[i].right) unlike[bits_[i]].push_back(i);
        std::vector<std::size_t> first;
        for (const auto& [bits, members] : unlike) first.push_back(members.front());
        std::sort(first.begin(), first.end(), [&](std::size_t x, std::size_t y) {
            return unlike[bits_[x]].size() != unlike[bits_[y]].size()
                       ? unlike[bits_[x]].size() > unlike[bits_[y]].size()
                       : x < y;
        });
        if (first.size() > most_compared) first.resize(most_compared);
        prove(first);
        for (const std::size_t i : first)
            if (entry_.members[i].right == false)
                for (const std::size_t same : unlike[bits_[i]]) {
                    entry_.members[same].right = false;
                    entry_.members[same].failed = entry_.members[i].failed;
                }
    }

    bool is_named(std::size_t i) const {
        return i < space_.kept || std::any_of(space_.picks.begin(), space_.picks.end(), [&](const auto& p) {
                   return p.member == i;
               });
    }

    /// All that run, but those whose first launch was so long and so slow that its time is enough.
    std::vector<std::size_t> worth_timing() {
        double fastest = INFINITY;
        for (std::size_t i = 0; i < count(); ++i)
            if (runs(i)) fastest = std::min(fastest, tried_us_[i]);
        std::vector<std::size_t> left;
        for (std::size_t i = 0; i < count(); ++i) {
            if (!runs(i)) continue;
            if (tried_us_[i] > long_us && tried_us_[i] > slow * fastest) entry_.members[i].first_us = tried_us_[i];
            else left.push_back(i);
        }
        return left;
    }

    /// In blocks of about a millisecond, in an order drawn for each pass; all members once, those near the fastest again.
    void time_first() {
        const Part part(timings_, "time once");
        std::vector<std::size_t> left = worth_timing();
        if (left.empty()) return;
        std::vector<TimedWork> works(count());
        std::vector<std::unique_ptr<Sequence>> blocks(count());
        std::int64_t offset = 0;
        for (const std::size_t i : left) {
            check_interrupted();
            // Blocks follow each other over all sets, as one long rotation: each finds its inputs as cold as in it.
            const std::int64_t begin = offset;
            works[i].launch = [this, i, begin](Stream stream, std::int64_t number) {
                launches_[i](stream, sets_->tensors((begin + number) % sets_->sets()));
            };
            const std::int64_t launches = std::clamp<std::int64_t>(
                std::int64_t(std::ceil(block_us / std::max(tried_us_[i], 1.0))), 1, most_launches);
            blocks[i] = std::make_unique<Sequence>(stream_, works[i], launches, launches);
            offset = (offset + launches) % sets_->sets();
        }
        keep_busy(left, blocks);
        std::vector<std::vector<double>> samples(count());
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t pass = 0; pass < most_passes && !left.empty(); ++pass) {
            if (pass > 0 && seconds_since(start) > first_seconds) break;
            time_pass(left, blocks, options_.seed + pass, samples);
            double best = INFINITY;
            for (const std::size_t i : left) best = std::min(best, median(samples[i]));
            std::erase_if(left, [&](std::size_t i) { return median(samples[i]) > near * best; });
            if (pass == 0)
                fastest_ = *std::min_element(left.begin(), left.end(), [&](std::size_t x, std::size_t y) {
                    return median(samples[x]) < median(samples[y]);
                });
            if (pass == 0) time_duplicate(*blocks[fastest_]);
        }
        for (std::size_t i = 0; i < count(); ++i)
            if (!samples[i].empty()) entry_.members[i].first_us = median(samples[i]);
    }

    /// Single launches, all members in each round; a second copy of the one that was fastest in its first launch.
    void time_first_cold() {
        const Part part(timings_, "time once");
        const std::vector<std::size_t> left = worth_timing();
        if (left.empty()) return;
        TimingOptions timing = options_.timing;
        timing.rounds.least = timing.rounds.most = cold_rounds;
        timing.rounds.drop_least = cold_rounds;
        const auto twice = std::min_element(left.begin(), left.end(), [&](std::size_t x, std::size_t y) {
            return tried_us_[x] < tried_us_[y];
        });
        const std::vector<double> us = time(left, std::size_t(twice - left.begin()), timing);
        for (std::size_t k = 0; k < left.size(); ++k) entry_.members[left[k]].first_us = us[k];
        entry_.duplicate_first_us = us.back();
    }

    void keep_busy(const std::vector<std::size_t>& members,
                   const std::vector<std::unique_ptr<Sequence>>& blocks) {
        const double seconds = bench_.load_seconds();
        const auto start = std::chrono::steady_clock::now();
        for (std::size_t next = 0; seconds_since(start) < seconds; ++next) {
            blocks[members[next % members.size()]]->run(stream_);
            if (next % 8 == 7) stream_.synchronize();
        }
    }

    void time_pass(const std::vector<std::size_t>& members,
                   const std::vector<std::unique_ptr<Sequence>>& blocks, std::uint64_t seed,
                   std::vector<std::vector<double>>& samples) {
        check_interrupted();
        std::vector<std::pair<Event, Event>> events(members.size());
        const std::vector<std::vector<std::size_t>> order = interleaved(members.size(), 1, seed);
        for (const std::size_t k : order.front()) {
            events[k].first.record(stream_);
            blocks[members[k]]->run(stream_);
            events[k].second.record(stream_);
        }
        stream_.synchronize();
        for (std::size_t k = 0; k < members.size(); ++k)
            samples[members[k]].push_back(elapsed_us(events[k].first, events[k].second)
                                          / double(blocks[members[k]]->launches()));
    }

    void time_duplicate(const Sequence& block) {
        Event start, stop;
        start.record(stream_);
        block.run(stream_);
        stop.record(stream_);
        stream_.synchronize();
        entry_.duplicate_first_us = elapsed_us(start, stop) / double(block.launches());
    }

    std::vector<std::size_t> by_first() const {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < count(); ++i)
            if (runs(i) && entry_.members[i].first_us) order.push_back(i);
        std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
            return *entry_.members[x].first_us < *entry_.members[y].first_us;
        });
        return order;
    }

    void time_again() {
        std::vector<std::size_t> order = by_first();
        std::vector<std::size_t> unproved;
        for (std::size_t k = 0; k < std::min(again_fastest, order.size()); ++k)
            if (!entry_.members[order[k]].right) unproved.push_back(order[k]);
        prove(unproved);
        order = by_first();
        std::vector<std::size_t> again;
        for (std::size_t k = 0; k < order.size(); ++k)
            if (k < again_fastest || is_named(order[k])) again.push_back(order[k]);
        if (again.empty()) return;
        const Part part(timings_, "time again");
        const bool is_long = *entry_.members[again.front()].first_us > long_us / 2;
        TimingOptions timing = options_.timing;
        timing.rounds.least = timing.rounds.most = is_long ? 3 : 6;
        timing.rounds.drop_least = 3;
        if (options_.mode == Mode::cold) {
            timing.rounds.least = timing.rounds.most = cold_again_rounds;
            timing.rounds.drop_least = cold_rounds;
        }
        const std::vector<double> us = time(again, 0, timing);
        for (std::size_t k = 0; k < again.size(); ++k) entry_.again.push_back({again[k], us[k]});
        entry_.duplicate = LedgerAgain{again[0], us.back()};
        if (options_.mode == Mode::cold || us.front() < settled_from_us || us.front() > settled_to_us) return;
        std::vector<std::size_t> places(again.size());
        std::iota(places.begin(), places.end(), 0);
        std::sort(places.begin(), places.end(), [&](std::size_t x, std::size_t y) { return us[x] < us[y]; });
        std::vector<std::size_t> settled, settled_places;
        for (std::size_t k = 0; k < places.size(); ++k)
            if (k < settled_fastest || again[places[k]] == 0 || places[k] == 0)
                settled.push_back(again[places[k]]), settled_places.push_back(places[k]);
        const std::size_t twice =
            std::size_t(std::find(settled.begin(), settled.end(), again[0]) - settled.begin());
        timing.block_seconds = timing.settled_block_seconds;
        timing.lead_seconds = timing.settle_seconds;
        timing.rounds.least = timing.rounds.most = is_long ? 3 : 4;
        const std::vector<double> later = time(settled, twice, timing);
        for (std::size_t k = 0; k < settled.size(); ++k)
            entry_.again[settled_places[k]].settled_us = later[k];
        entry_.duplicate->settled_us = later.back();
    }

    /// Times of `members`, then of a second copy of the one at place `twice`, by ratios paired with the fastest.
    std::vector<double> time(const std::vector<std::size_t>& members, std::size_t twice,
                             TimingOptions timing) {
        std::vector<TimedWork> works;
        for (const std::size_t i : members)
            works.push_back(
                {.name = fmt::format("member {}", i),
                 .launch = [this, i](Stream stream,
                                     std::int64_t set) { launches_[i](stream, sets_->tensors(set)); },
                 .role = i == 0 ? Role::leader : Role::other});
        works.push_back(works[twice]);
        works.back().role = Role::other;
        timing.mode = options_.mode;
        timing.sets = sets_->sets();
        timing.seed = options_.seed;
        timing.rounds.error = INFINITY;  // no other blocks after the first rounds
        timing.alone_seconds = 0;
        timing.confirmation.rounds = 0;
        timing.interrupted = options_.interrupted;
        if (timing.mode != Mode::cold) timing.load_seconds = bench_.load_seconds();
        const std::vector<TimedResult> timed =
            time_works(works, timing, bench_.kernels(), bench_.gpu(), bench_.device().l2_bytes);
        const auto fastest = std::min_element(
            timed.begin(), timed.end(),
            [](const TimedResult& x, const TimedResult& y) { return x.time_us.median < y.time_us.median; });
        std::vector<double> us;
        for (const TimedResult& result : timed) {
            const auto ratio = round_ratio(result.rounds, fastest->rounds);
            us.push_back(ratio ? fastest->time_us.median * ratio->median : result.time_us.median);
        }
        return us;
    }

    Bench& bench_;
    const MeasureOptions& options_;
    const DeclaredSpace& space_;
    LedgerEntry& entry_;
    std::vector<TensorInfo> tensors_;
    std::optional<TensorSets> sets_;
    std::unique_ptr<Trial> trial_;
    std::vector<Timing>& timings_;
    StreamOwner stream_;
    std::vector<TensorLaunch> launches_;  ///< empty: it cannot run
    std::vector<const Reference*> references_;  ///< of each that runs
    std::vector<double> tried_us_;
    std::vector<std::uint64_t> bits_;  ///< fingerprints of what each left
    std::set<std::uint64_t> proved_;
    std::size_t fastest_ = 0;
};

}  // namespace

LedgerEntry time_space(Bench& bench, const DeclaredSpace& space, const Problem& problem,
                       PreparedTrial& prepared, const std::vector<CompiledOutcome>& kernels,
                       std::vector<Timing>& timings) {
    const auto start = std::chrono::steady_clock::now();
    LedgerEntry entry;
    entry.problem = problem;
    for (const Plan& plan : space.members)
        entry.members.push_back(
            {problem.operation->config_record(plan), plan.time_us, std::nullopt, std::nullopt, {}});
    entry.kept = space.kept;
    for (const auto& pick : space.picks) entry.picks.push_back({pick.name, pick.member});
    entry.notes = space.notes;
    SpaceBench(bench, space, prepared.begin(bench, timings), entry, timings).run(kernels);
    entry.seconds = seconds_since(start);
    return entry;
}

}  // namespace rooftile
