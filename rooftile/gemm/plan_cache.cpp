#include "rooftile/gemm/plan_cache.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rooftile {
namespace {

// Appends values to bytes, each in its own length.
struct Packer {
    std::span<unsigned char> bytes;
    std::size_t& size;

    template <class Value>
    void operator()(const Value& value) const {
        static_assert(std::has_unique_object_representations_v<Value> || std::is_floating_point_v<Value>,
                      "equal values must be equal bytes");
        assert(size + sizeof value <= bytes.size());
        std::memcpy(bytes.data() + size, &value, sizeof value);
        size += sizeof value;
    }
    // Whether it is fixed, and at what.
    template <class Value>
    void operator()(const std::optional<Value>& value) const {
        (*this)(value.has_value());
        (*this)(value.value_or(Value{}));
    }
};

struct Hash {
    std::size_t operator()(const PlanQuestion& question) const { return question.hash(); }
};

}  // namespace

// A structure that gets a field does not compile here until the field is named.
PlanQuestion::PlanQuestion(const GemmProblem& problem, const GemmRequest& request) : epilogue_(problem.epilogue.text() + '\n' + problem.groups.text() + '\n' + (problem.image ? problem.image->text() : "")) {
    const Packer pack{bytes_, size_};
    const auto put = [&](const auto&... values) { (pack(values), ...); };
    const auto& [m, n, k, a_type, b_type, c_type, accumulate_type, a_major, b_major, lda, ldb, ldc, a_offset,
                 b_offset, c_offset, batch, a_stride, b_stride, c_stride, alpha, beta, accumulation, epilogue, groups, quantised, unpacked, narrow, image, image_columns, gathered] = problem;
    put(m, n, k, a_type, b_type, c_type, accumulate_type, a_major, b_major, lda, ldb, ldc, a_offset, b_offset,
        c_offset, batch, a_stride, b_stride, c_stride, alpha, beta, accumulation, quantised.weights, quantised.group, quantised.scale,
        quantised.zeros, unpacked.weights, unpacked.group, unpacked.scale, unpacked.zeros);
    put(bool(narrow));
    if (narrow) put(narrow->type, narrow->lda, narrow->a_offset);
#define ROOFTILE_KNOB(TYPE, NAME, ...) NAME,
    const auto& [kernel,
#include "rooftile/gemm/knobs.def"
                 top, buildable_only, simulate, exhaustive] = request;
    put(kernel,
#include "rooftile/gemm/knobs.def"
        top, buildable_only, simulate, exhaustive);
#undef ROOFTILE_KNOB
}

std::size_t PlanQuestion::hash() const { return XXH3_64bits_withSeed(bytes_.data(), size_, XXH3_64bits(epilogue_.data(), epilogue_.size())); }

struct PlanCache::Store {
    struct Entry {
        PlanQuestion question;
        std::shared_ptr<const Outcome> outcome;
    };

    const std::size_t most;
    mutable std::mutex mutex{};
    std::list<Entry> entries{};  // the last asked for first
    std::unordered_map<PlanQuestion, std::list<Entry>::iterator, Hash> places{};
    std::size_t derived = 0;

    // Null where it is not there. With the mutex held, as insert().
    const std::shared_ptr<const Outcome>* find(const PlanQuestion& question) {
        const auto place = places.find(question);
        if (place == places.end()) return nullptr;
        entries.splice(entries.begin(), entries, place->second);
        return &place->second->outcome;
    }
    void insert(const PlanQuestion& question, std::shared_ptr<const Outcome> outcome) {
        entries.push_front({question, std::move(outcome)});
        places.emplace(question, entries.begin());
        if (entries.size() <= most) return;
        places.erase(entries.back().question);
        entries.pop_back();
    }
};

PlanCache::PlanCache(Machine machine, std::size_t most)
    : machine_(std::make_shared<const Machine>(std::move(machine))),
      store_(new Store{.most = std::max<std::size_t>(most, 1)}) {}
PlanCache::~PlanCache() = default;

std::shared_ptr<const PlanCache::Outcome> PlanCache::derive(const GemmProblem& problem,
                                                            const GemmRequest& request) {
    const PlanQuestion question(problem, request);
    {
        const std::lock_guard lock(store_->mutex);
        if (const auto* outcome = store_->find(question)) return *outcome;
    }
    // Others look up and derive meanwhile; of two that derive the same, the first is kept.
    auto outcome = std::make_shared<const Outcome>(rooftile::derive(machine_, problem, request));
    const std::lock_guard lock(store_->mutex);
    ++store_->derived;
    if (const auto* first = store_->find(question)) return *first;
    store_->insert(question, outcome);
    return outcome;
}

std::size_t PlanCache::size() const {
    const std::lock_guard lock(store_->mutex);
    return store_->entries.size();
}

std::size_t PlanCache::derived() const {
    const std::lock_guard lock(store_->mutex);
    return store_->derived;
}

}  // namespace rooftile
