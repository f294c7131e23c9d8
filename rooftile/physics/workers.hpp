// Two workers of one CTA on unlike units: one's products while the other has its function [M35, M38].
#pragma once

#include <string>
#include <vector>

#include "rooftile/machine/machine.hpp"

namespace rooftile {

/// What a worker does with a block, one stage after the other.
struct WorkerStage {
    std::string name, unit;
    double cycles = 0;          ///< of the unit, by itself
    bool asynchronous = false;  ///< the unit works by itself; else the worker's threads are taken as long as it does
};

enum class Phase {
    together,  ///< both begin at once; who wants a unit at the same time shares it
    apart      ///< a unit serves one after the other, so that they come to lie a stage apart
};

struct WorkersRun {
    int workers = 1;
    Phase phase = Phase::apart;
    double cycles_per_block = 0;  ///< of both workers' blocks, in the long run
    struct Busy {
        std::string unit;
        double share = 0;
    };
    std::vector<Busy> busy;  ///< share of that time in which a unit works, in the order in which units are first named
};

/// Event by event. Each worker's blocks pass a stage in order, and `in_flight` of them are begun and not finished at most.
WorkersRun simulate_workers(const std::vector<WorkerStage>& stages, int workers, Phase phase, int in_flight);

/// (t_products + t_function) / the longest unit's time: what work on both at once can gain over one worker [M38], who begins at most `in_flight`
/// blocks. Copies count besides where nothing hides them from that worker: with one block in flight, or where its threads wait for them.
double workers_ceiling(const std::vector<WorkerStage>& stages, int in_flight);

/// A block of queries by keys (scores, their exponentials, values), or a tile of a product whose elements pass SiLU.
enum class Work { softmax, silu };
struct WorkerTile {
    Work work = Work::softmax;
    int m = 128, n = 128;
    std::int64_t dim = 128;  ///< elements of a query, or K of the product
};
/// Its stages with the machine's rates, operands of bf16. Throws RequestError that names an unknown rate.
std::vector<WorkerStage> stages_of(const Machine& machine, const WorkerTile& tile);

}  // namespace rooftile
