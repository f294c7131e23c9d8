// The tuned mode: a problem's most unlike plans timed once, side by side, and the winner kept. Plan 1 stays the choice unless another is
// faster beyond the noise.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "rooftile/measure/measure.hpp"
#include "rooftile/tune/store.hpp"

namespace rooftile {

/// Plans that are timed where the request does not say, and the most it may ask for.
inline constexpr int tune_count = 4, most_tuned = 16;
/// Plans among which they are found: of as few as a page shows the unlike ones are hardly better than the first ones.
inline constexpr int tune_kept = 32;

/// Rounds, blocks and the paired re-measurement of plan 1 and the fastest, which decides: together under 0.3 s a problem where a launch
/// takes up to some 2 ms, else a few launches of each plan.
TimingOptions tune_timing();
/// Rounds of so many plans, of which the first is predicted to take so long.
int tune_rounds(std::optional<double> predicted_us, std::size_t plans);

/// The task that times `count` unlike ones of `plans`, which has one that can be built.
MeasureTask tune_task(PlanSet plans, int count);
/// What the rows of such a task say; empty where none of them is a result. The choice's plan 1 is the best ranked one that ran.
std::optional<TunedChoice> choice_of(const TunePlace& place, std::span<const Measurement> rows);

/// The stored choice for that place first among `plans`, where there is one.
std::optional<TunedChoice> put_first(const TuneStore& store, const TunePlace& place, PlanSet& plans);

/// The place, among `plans`, of the choice of `count` plans for the GPU `device`, whose context is current: the stored one, else one
/// that is timed on these tensors and kept. Results are written again and again, with the same values; inputs are not. Waits for `stream`
/// first. Empty while `stream` is being captured and nothing is stored: launches cannot be timed then; and where `count` is 0, which
/// asks for what is stored alone. Throws RequestError where no plan can be built, and what a compiler or the GPU refuses.
std::optional<std::size_t> tuned_place(const TuneStore& store, const PlanSet& plans, int count, int device, Stream stream,
                                       std::span<void* const> tensors);

}  // namespace rooftile
