# ROOFTILE_PUBLIC_HEADERS, which are installed, and ROOFTILE_INTERNAL_HEADERS, which our own sources alone include
# because they need a library that no user should have to install. All relative to the repository's root.
set(ROOFTILE_INTERNAL_HEADERS
    rooftile/kernel/driver_table.hpp  # cuda.h
    rooftile/kernel/fuse_rows.hpp     # fmt
    rooftile/kernel/fuse_writer.hpp   # fmt
    rooftile/plan/gemm_writer.hpp     # fmt
    rooftile/probe/compare.hpp        # report/json.hpp
    rooftile/probe/document.hpp
    rooftile/problem/suite_reader.hpp  # toml++/toml.h
    rooftile/report/csv.hpp           # nlohmann/json_fwd.hpp, by report/json.hpp
    rooftile/report/explanation_json.hpp
    rooftile/report/fuse_json.hpp
    rooftile/report/fuse_measurement.hpp
    rooftile/report/json.hpp
    rooftile/report/ladder_json.hpp
    rooftile/report/machine_report.hpp
    rooftile/report/predictions.hpp
    rooftile/report/recorded_run.hpp
    rooftile/report/simulation.hpp
    rooftile/report/traffic.hpp)

file(GLOB_RECURSE ROOFTILE_PUBLIC_HEADERS CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
    "${PROJECT_SOURCE_DIR}/rooftile/*.hpp" "${PROJECT_SOURCE_DIR}/kernels/*.hpp")
list(REMOVE_ITEM ROOFTILE_PUBLIC_HEADERS ${ROOFTILE_INTERNAL_HEADERS})
