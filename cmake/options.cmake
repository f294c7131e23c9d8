# How our own code is compiled and linked. Interface libraries, so that nothing reaches a project that
# includes this one.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
# Sanitizers bring libraries of their own, and their own checks of the string functions.
if(ROOFTILE_SANITIZE)
    set(fortify OFF)
    set(static_runtime OFF)
else()
    set(fortify ON)
    set(static_runtime ${ROOFTILE_STATIC_RUNTIME})
endif()

add_library(rooftile_options INTERFACE)
target_compile_options(rooftile_options INTERFACE
    -Wall -Wextra
    # GCC 12 sees overlaps and overflows inside std::string and fmt that are not there (gcc.gnu.org/PR105651).
    "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>"
    $<$<BOOL:${ROOFTILE_WARNINGS_AS_ERRORS}>:-Werror>
    # The same objects in every checkout, and messages that name files from the repository's root.
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/="
    -fstack-protector-strong
    # -U first: some distributions define another level by themselves. Both here, since definitions precede options.
    $<${optimised}:-U_FORTIFY_SOURCE>
    $<$<AND:${optimised},$<BOOL:${fortify}>>:-D_FORTIFY_SOURCE=2>
    # GCC collects garbage at every few MB that it has taken, which is a tenth of its time.
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>
    $<$<BOOL:${ROOFTILE_ASSERTIONS}>:-UNDEBUG>)
target_compile_definitions(rooftile_options INTERFACE
    $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(ROOFTILE_SANITIZE)
    target_compile_options(rooftile_options INTERFACE
        "-fsanitize=${ROOFTILE_SANITIZE}" -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(rooftile_options INTERFACE "-fsanitize=${ROOFTILE_SANITIZE}")
endif()

# Programs: addresses resolved at start and then read-only, no executable stack, and no C++ library wanted
# from the machine they are carried to.
add_library(rooftile_program_options INTERFACE)
target_link_options(rooftile_program_options INTERFACE
    "LINKER:-z,relro" "LINKER:-z,now" "LINKER:-z,noexecstack"
    $<$<BOOL:${static_runtime}>:-static-libstdc++>
    $<$<BOOL:${static_runtime}>:-static-libgcc>)
