#include "rooftile/plan/fuse_staging.hpp"

namespace rooftile {

StagedRows staged_rows(const Program& program, const FuseConfig& c) {
    StagedRows rows;
    if (c.home != FuseHome::shared) return rows;
    const std::int64_t vectors = std::int64_t(c.stages) * c.items * c.threads;
    for (size_t i = 0; i < program.values.size(); ++i) {
        const ProgramValue& v = program.values[i];
        if (v.kind != ValueKind::load || v.level != Level::element || !v.access.full()) continue;
        const std::int64_t bytes = vectors * c.width * bytes_of(v.element);
        rows.tensors.push_back({int(i), rows.bytes, bytes});
        rows.bytes += bytes;  // threads come in warps: every tensor begins at a multiple of 16 bytes
    }
    return rows;
}

}  // namespace rooftile
