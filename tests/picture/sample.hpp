// Documents with round numbers, as plans and runs have them.
#pragma once

#include <nlohmann/json.hpp>

#include "rooftile/report/json.hpp"

namespace rooftile::sample {

/// 4 stages, 6 steps of 100 cycles; a roof of 60 us, a prediction of 100, all else between.
inline Json pictured_plan() {
    return Json::parse(R"json({
  "schema": "rooftile/plan/1",
  "context": {"version": "0", "machine_hash": null, "kernel_hash": null, "command": "rooftile plan sample --json"},
  "machine": {"id": "made-up", "name": "a GPU"},
  "problem": {"op": "sample"},
  "plans": [{
    "rank": 1, "buildable": true,
    "config": {"tile_m": 128, "tile_n": 64, "stages": 4, "order": "row"},
    "resources": {"stage_bytes": 1000},
    "prediction": {"time_us": 100, "tflops": 0.2, "bound": "tensor"},
    "derivation": [
      {"quantity": "stages_max", "formula": "floor(shared / stage_bytes)", "inputs": [{"name": "shared", "value": 4500, "unit": "B", "source": "a <datasheet>"}], "value": 4, "unit": "stages", "limit": "5 do not fit"},
      {"quantity": "stages", "formula": "all that fit", "inputs": [{"name": "stages_max", "value": 4, "unit": "stages", "source": "an earlier step"}], "value": 4, "unit": "stages", "limit": "4000 B"},
      {"quantity": "order", "formula": "the least DRAM bytes", "inputs": [], "value": 5000000, "unit": "B", "limit": "row"}],
    "unknown": [], "unknown_inputs": [],
    "attainability": [
      {"step": "datasheet_roof", "time_ns": 60000, "cost_ns": 60000, "inputs": [], "note": null},
      {"step": "waves", "time_ns": 60000, "cost_ns": 0, "inputs": [], "note": null},
      {"step": "dram", "time_ns": 90000, "cost_ns": 30000, "inputs": [], "note": null},
      {"step": "launch", "time_ns": 100000, "cost_ns": 10000, "inputs": [], "note": null}],
    "roofline": {"flop": 20000000,
      "peaks": [{"name": "datasheet", "flop_per_s": 1e12, "clock_mhz": 2000, "source": "s"}, {"name": "predicted_clock", "flop_per_s": 5e11, "clock_mhz": 1000, "source": "s"}],
      "levels": [{"level": "dram", "key": "dram.bandwidth", "bytes": 1000000, "bytes_per_s": 1e11, "source": "s"}, {"level": "l2", "key": "l2.bandwidth", "bytes": 4000000, "bytes_per_s": 4e11, "source": "s"}]},
    "pipeline": {"stages": 4, "steps": 6, "step_cycles": 100, "load_cycles": 150, "first_load_cycles": 300, "load_interval_cycles": 10, "turn_cycles": 20,
      "epilogue_cycles": 80, "epilogue_overlapped": false, "clock_mhz": 1000, "units": [{"unit": "MMA", "cycles": 90}, {"unit": "L2", "cycles": 40}]}}],
  "map": {"x": "tile_m", "y": "tile_n", "cells": [
    {"tile_m": 64, "tile_n": 64, "time_us": 125.5, "label": "64x64", "wall": null, "why": null},
    {"tile_m": 128, "tile_n": 64, "time_us": 100, "label": "128x64", "wall": null, "why": null},
    {"tile_m": 64, "tile_n": 128, "time_us": null, "label": null, "wall": "registers", "why": "300 registers a thread > 255"},
    {"tile_m": 128, "tile_n": 128, "time_us": null, "label": null, "wall": null, "why": null}]},
  "rejected": {"count": 3, "reasons": {"registers": 3}},
  "unknown": [], "unchecked_constraints": [], "notes": ["a note with <markup> & more"]})json");
}

/// Four problems over two sizes; the last has no time.
inline Json pictured_sweep() {
    return Json::parse(R"json({
  "schema": "rooftile/sweep/1",
  "context": {"version": "0", "command": "rooftile sweep sample", "gpu": "GPU 9", "date": "2026-01-02T03:04:05Z", "seed": 7},
  "machine": {"id": "made-up", "name": "a GPU"}, "operation": "sample", "suite": "s", "law": "log-uniform", "mode": "sustained", "baseline": "library", "problems": 4,
  "axes": ["m", "n k"],
  "points": [
    {"name": "a", "m": 64, "n k": 1000, "time_us": 10, "baseline_us": 9, "predicted_us": 10.4, "ratio": 0.9, "label": "p", "invalid": null},
    {"name": "b", "m": 70, "n k": 1000, "time_us": 10, "baseline_us": 12.1, "predicted_us": 9.2, "ratio": 1.21, "label": "p", "invalid": null},
    {"name": "c", "m": 4096, "n k": 100000, "time_us": 100, "baseline_us": 300, "predicted_us": 160, "ratio": 3, "label": "p", "invalid": null},
    {"name": "d", "m": 4096, "n k": 2000, "time_us": null, "baseline_us": null, "predicted_us": null, "ratio": null, "label": null, "invalid": "wrong"}],
  "figures": [], "launches": [], "worst": [], "without_result": [], "under_5_us": {}})json");
}

}  // namespace rooftile::sample
