# Libraries from the distribution. Each is used as headers only, inside our .cpp files: neither a program nor
# an installed library needs them. fmt is compiled once, in rooftile/fmt.cpp. docs/dependencies.md gives the reason for each.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
if(NOT ROOFTILE_MODEL_ONLY)
    find_package(CLI11 2.1 REQUIRED)
endif()
# Found by header: the CMake files of toml++ name a shared library in some distributions, xxhash has none.
find_path(ROOFTILE_TOML_INCLUDE_DIR toml++/toml.h REQUIRED)
find_path(ROOFTILE_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
mark_as_advanced(ROOFTILE_TOML_INCLUDE_DIR ROOFTILE_XXHASH_INCLUDE_DIR)

get_target_property(fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
add_library(rooftile_header_only INTERFACE)
target_link_libraries(rooftile_header_only INTERFACE nlohmann_json::nlohmann_json)
target_include_directories(rooftile_header_only SYSTEM INTERFACE ${fmt_include})
target_include_directories(rooftile_header_only SYSTEM INTERFACE
    "${ROOFTILE_TOML_INCLUDE_DIR}" "${ROOFTILE_XXHASH_INCLUDE_DIR}")
# toml++ recurses where values nest: 32 levels are more than any machine file has.
target_compile_definitions(rooftile_header_only INTERFACE TOML_HEADER_ONLY=1 TOML_MAX_NESTED_VALUES=32)
