# rooftile_batches(TARGET): compiles the target's sources in batches of a folder's neighbours, so that
# what they all include is read, and its templates are made, once a batch: half of the build's time. Names in anonymous
# namespaces then meet those of the neighbours: same helpers are shared, others named apart. A source with options of its own
# stands alone. Not where one source is compiled again and again (the presets dev and asan).
option(ROOFTILE_BATCHES "Compile sources in batches" ON)
set(ROOFTILE_BATCH 10)  # a batch of more saves little, and is what a change of one source costs
function(rooftile_batches target)
    if(NOT ROOFTILE_BATCHES)
        return()
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # It takes a source's own types for those of a header, since the batch includes the source.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources EXCLUDE REGEX "/embedded/|\\.c$|^[$]<")
    foreach(source IN LISTS sources)
        cmake_path(ABSOLUTE_PATH source NORMALIZE OUTPUT_VARIABLE folder)
        cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
        cmake_path(GET folder PARENT_PATH folder)
        string(MAKE_C_IDENTIFIER "${folder}" folder)
        list(APPEND folders ${folder})
        list(APPEND in_${folder} "${source}")
    endforeach()
    list(REMOVE_DUPLICATES folders)
    foreach(folder IN LISTS folders)
        # Batches of one size, the last of a folder too.
        list(LENGTH in_${folder} length)
        math(EXPR count "(${length} + ${ROOFTILE_BATCH} - 1) / ${ROOFTILE_BATCH}")
        set(place 0)
        foreach(source IN LISTS in_${folder})
            math(EXPR batch "${place} * ${count} / ${length}")
            set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${batch}")
            math(EXPR place "${place} + 1")
        endforeach()
    endforeach()
endfunction()
