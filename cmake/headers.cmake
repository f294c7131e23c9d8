# ROOFTILE_PUBLIC_HEADERS, which are installed, and ROOFTILE_INTERNAL_HEADERS, which our own sources alone include
# because they need a library that no user should have to install. All relative to the repository's root.
set(ROOFTILE_INTERNAL_HEADERS
    rooftile/runtime/driver_table.hpp  # cuda.h
    rooftile/fuse/device/rows.hpp     # fmt
    rooftile/fuse/device/writer.hpp   # fmt
    rooftile/gemm/writer.hpp     # fmt
    rooftile/probe/compare.hpp        # report/json.hpp
    rooftile/probe/document.hpp
    rooftile/core/suite_reader.hpp  # toml++/toml.h
    rooftile/report/csv.hpp           # nlohmann/json_fwd.hpp, by report/json.hpp
    rooftile/gemm/explanation_json.hpp
    rooftile/fuse/json.hpp
    rooftile/fuse/measurement_report.hpp
    rooftile/report/json.hpp
    rooftile/gemm/ladder_json.hpp
    rooftile/report/machine_report.hpp
    rooftile/gemm/predictions.hpp
    rooftile/gemm/recorded_run.hpp
    rooftile/gemm/simulation_report.hpp
    rooftile/gemm/traffic_report.hpp)

file(GLOB_RECURSE ROOFTILE_PUBLIC_HEADERS CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/rooftile/*.hpp" "${PROJECT_SOURCE_DIR}/kernels/*.hpp")
list(REMOVE_ITEM ROOFTILE_PUBLIC_HEADERS ${ROOFTILE_INTERNAL_HEADERS})
