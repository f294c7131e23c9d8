#include "rooftile/names/name_json.hpp"

#include <nlohmann/json.hpp>

namespace rooftile {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json name_json(const KernelName& n) {
    return {{"name", n.name},
            {"family", n.family},
            {"library", text_or_null(n.library)},
            {"role", text_or_null(n.role)},
            {"operation", text_or_null(n.operation)},
            {"arch", text_or_null(n.arch)},
            {"types",
             {{"a", text_or_null(n.types.a)}, {"b", text_or_null(n.types.b)}, {"c", text_or_null(n.types.c)}, {"accumulate", text_or_null(n.types.accumulate)}}},
            {"tile_m", or_null(n.tile_m)},
            {"tile_n", or_null(n.tile_n)},
            {"tile_k", or_null(n.tile_k)},
            {"stages", or_null(n.stages)},
            {"cluster_m", or_null(n.cluster_m)},
            {"cluster_n", or_null(n.cluster_n)},
            {"split_k", or_null(n.split_k)},
            {"layout", text_or_null(n.layout)},
            {"schedule", text_or_null(n.schedule)},
            {"consumer_warpgroups", or_null(n.consumer_warpgroups)},
            {"threads", or_null(n.threads)},
            {"cta_pair", or_null(n.cta_pair)},
            {"raster", text_or_null(n.raster)},
            {"alignment_bytes", or_null(n.alignment_bytes)},
            {"epilogue", text_or_null(n.epilogue)},
            {"instruction", text_or_null(n.instruction)},
            {"scaling", text_or_null(n.scaling)},
            {"shape_m", or_null(n.shape_m)},
            {"shape_n", or_null(n.shape_n)},
            {"shape_k", or_null(n.shape_k)},
            {"uncertain", n.uncertain}};
}

}  // namespace rooftile
