# Libraries from the distribution. Each is used as headers only, inside our .cpp files: neither a program nor
# an installed library needs them. fmt is compiled once, in rooftile/fmt.cpp. docs/dependencies.md gives the reason for each.
# A source package carries them below third_party/ (tools/sdist), for systems that have none of that version.
set(ROOFTILE_CARRIED "${PROJECT_SOURCE_DIR}/third_party/include")
macro(rooftile_headers package version target header)
    if(NOT EXISTS "${ROOFTILE_CARRIED}")
        find_package(${package} ${version} REQUIRED)
    else()
        find_package(${package} ${version} QUIET)
        if(NOT TARGET ${target})
            find_path(ROOFTILE_${package}_INCLUDE_DIR ${header} PATHS "${ROOFTILE_CARRIED}" NO_DEFAULT_PATH REQUIRED)
            mark_as_advanced(ROOFTILE_${package}_INCLUDE_DIR)
            add_library(${target} INTERFACE IMPORTED)
            target_include_directories(${target} SYSTEM INTERFACE "${ROOFTILE_${package}_INCLUDE_DIR}")
        endif()
    endif()
endmacro()
find_package(Threads REQUIRED)
rooftile_headers(nlohmann_json 3.11 nlohmann_json::nlohmann_json nlohmann/json.hpp)
rooftile_headers(fmt 9 fmt::fmt-header-only fmt/core.h)
if(NOT ROOFTILE_MODEL_ONLY)
    rooftile_headers(CLI11 2.1 CLI11::CLI11 CLI/CLI.hpp)
endif()
# Found by header: the CMake files of toml++ name a shared library in some distributions, xxhash has none.
find_path(ROOFTILE_TOML_INCLUDE_DIR toml++/toml.h PATHS "${ROOFTILE_CARRIED}" REQUIRED)
find_path(ROOFTILE_XXHASH_INCLUDE_DIR xxhash.h PATHS "${ROOFTILE_CARRIED}" REQUIRED)
mark_as_advanced(ROOFTILE_TOML_INCLUDE_DIR ROOFTILE_XXHASH_INCLUDE_DIR)

get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
add_library(rooftile_header_only INTERFACE)
target_link_libraries(rooftile_header_only INTERFACE nlohmann_json::nlohmann_json)
target_include_directories(rooftile_header_only SYSTEM INTERFACE ${fmt_include})
target_include_directories(rooftile_header_only SYSTEM INTERFACE
    "${ROOFTILE_TOML_INCLUDE_DIR}" "${ROOFTILE_XXHASH_INCLUDE_DIR}")
# toml++ recurses where values nest: 32 levels are more than any machine file has.
target_compile_definitions(rooftile_header_only INTERFACE TOML_HEADER_ONLY=1 TOML_MAX_NESTED_VALUES=32)
