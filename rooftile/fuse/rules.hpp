// The rules of the search for launches: what it leaves out although nothing forbids it, each with the reason. Most say
// what lost wherever it was measured; docs/facts.md has the runs.
#pragma once

#include "rooftile/core/step.hpp"

namespace rooftile::fuse_rules {

// Point-wise kernels and reductions of everything.
inline constexpr Rule pointwise_vectors{
    "pointwise_vectors",
    "more than two vectors a thread scatter over DRAM; reductions of everything take up to eight"};

// Rows that threads hold, wait in shared memory, or are read again.
inline constexpr Rule read_again{"read_again",
                                 "a row of several readings is read again only where nothing can hold it"};
inline constexpr Rule few_vectors{"few_vectors",
                                  "many threads with little each spend their time starting and reducing"};
inline constexpr Rule parts_of_lines{
    "parts_of_lines", "rows that share a warp and would store parts of lines are in shared memory together"};
inline constexpr Rule whole_vectors{
    "whole_vectors", "rows of whole vectors that end with lines, or are only read, wait in registers"};
inline constexpr Rule held_vectors{
    "held_vectors", "registers hold eight vectors of a row, four where it is less than a warp's"};
inline constexpr Rule early_weights{"early_weights",
                                    "weights in registers beside a warp's row cost CTAs: from 48 "
                                    "registers of both on"};
inline constexpr Rule unrolled_code{
    "unrolled_code", "all that a thread holds is unrolled: above 1800 instructions it compiles too slowly"};
// Rings.
inline constexpr Rule ring_row{
    "ring_row", "shorter rows are held by several CTAs an SM at once, and what is read once waits nowhere"};
inline constexpr Rule ring_part{"ring_part", "a CTA's part of a row has 32 KiB or more"};
inline constexpr Rule ring_chunk{"ring_chunk",
                                 "larger chunks come late, smaller ones are more barriers than they need be"};
inline constexpr Rule kept_weights{"kept_weights", "what is read fewer than four times need not be kept"};


// Rows that are all resident at once.
inline constexpr Rule ragged_iterations{
    "ragged_iterations", "iterations that end after the row are guarded: whole ones no 5 % later go first"};
inline constexpr Rule alone_on_sm{
    "alone_on_sm",
    "a CTA alone on its SM idles while its row is reduced: one with others that is no 5 % later goes first"};

/// In the order in which docs/rules.md has them.
inline constexpr const Rule* all[] = {
    &pointwise_vectors, &read_again,     
    &few_vectors,    &parts_of_lines, &whole_vectors, &held_vectors,    &early_weights,
    &unrolled_code,   
    &ring_row,          &ring_part,        &ring_chunk,       &kept_weights,   &ragged_iterations,
    &alone_on_sm};

}  // namespace rooftile::fuse_rules
