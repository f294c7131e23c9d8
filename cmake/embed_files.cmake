# rooftile_embed(TARGET FUNCTION PATTERN...): compiles every file below the source folder that matches a PATTERN
# (at any depth) into TARGET, readable by rooftile::FUNCTION() of rooftile/embedded.hpp.
function(rooftile_embed target function)
    list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE patterns)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${patterns})
    list(TRANSFORM files PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE depends)
    # A semicolon would end the argument of a custom command.
    list(JOIN files "," joined)
    set(output "${PROJECT_BINARY_DIR}/embedded/${function}.cpp")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
    add_custom_command(OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DFILES=${joined}"
            "-DFUNCTION=${function}" "-DOUTPUT=${output}" -P "${script}"
        DEPENDS ${depends} "${script}"
        COMMENT "Embedding files for ${function}()" VERBATIM)
    target_sources(${target} PRIVATE "${output}")
endfunction()

# rooftile_embed_library(TARGET FUNCTION LIBRARY): compiles a shared library that is built here into TARGET, as the one file of
# rooftile::FUNCTION().
function(rooftile_embed_library target function library)
    set(output "${PROJECT_BINARY_DIR}/embedded/${function}.cpp")
    set(script "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
    add_custom_command(OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DROOT=$<TARGET_FILE_DIR:${library}>" "-DFILES=$<TARGET_FILE_NAME:${library}>"
            "-DFUNCTION=${function}" "-DOUTPUT=${output}" -P "${script}"
        DEPENDS ${library} "${script}"
        COMMENT "Embedding ${library} for ${function}()" VERBATIM)
    target_sources(${target} PRIVATE "${output}")
endfunction()

# rooftile_program_hash(TARGET PATTERN...): compiles a hash of the paths and the text of every such file into TARGET,
# readable by rooftile::program_hash() of rooftile/embedded.hpp.
function(rooftile_program_hash target)
    list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE patterns)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${patterns})
    list(TRANSFORM files PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE depends)
    list(JOIN files "," joined)
    set(output "${PROJECT_BINARY_DIR}/embedded/program_hash.cpp")
    set(script "${PROJECT_SOURCE_DIR}/cmake/program_hash.cmake")
    add_custom_command(OUTPUT "${output}"
        COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DFILES=${joined}" "-DOUTPUT=${output}" -P "${script}"
        DEPENDS ${depends} "${script}"
        COMMENT "Hashing the sources" VERBATIM)
    target_sources(${target} PRIVATE "${output}")
endfunction()
