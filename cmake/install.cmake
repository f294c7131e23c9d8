# What find_package(rooftile) and pkg-config find. Headers keep their paths from the repository's root and lie
# in a folder of their own, so that <prefix>/include gains one name.
include(CMakePackageConfigHelpers)

set(installed rooftile_model)
if(TARGET rooftile)
    list(APPEND installed rooftile rooftile_shared)
endif()
if(TARGET rooftile_cli)
    install(TARGETS rooftile_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    # What the program says of itself: the manual page and what shells complete.
    set(shells "${PROJECT_BINARY_DIR}/shells")
    add_custom_command(OUTPUT "${shells}/rooftile.1" "${shells}/rooftile" "${shells}/_rooftile" "${shells}/rooftile.fish"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${shells}"
        COMMAND sh -c "ROOFTILE_CONFIG= '$<TARGET_FILE:rooftile_cli>' man >'${shells}/rooftile.1'"
        COMMAND sh -c "ROOFTILE_CONFIG= '$<TARGET_FILE:rooftile_cli>' completion bash >'${shells}/rooftile'"
        COMMAND sh -c "ROOFTILE_CONFIG= '$<TARGET_FILE:rooftile_cli>' completion zsh >'${shells}/_rooftile'"
        COMMAND sh -c "ROOFTILE_CONFIG= '$<TARGET_FILE:rooftile_cli>' completion fish >'${shells}/rooftile.fish'"
        DEPENDS rooftile_cli VERBATIM)
    add_custom_target(rooftile_shells ALL DEPENDS "${shells}/rooftile.1")
    install(FILES "${shells}/rooftile.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
    install(FILES "${shells}/rooftile" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
    install(FILES "${shells}/_rooftile" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
    install(FILES "${shells}/rooftile.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
install(TARGETS ${installed} EXPORT rooftileTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
foreach(header IN LISTS ROOFTILE_PUBLIC_HEADERS ROOFTILE_PUBLIC_LISTS)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rooftile/${folder}")
endforeach()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/rooftile")
install(EXPORT rooftileTargets NAMESPACE rooftile:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/rooftileConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/rooftileConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change any name.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rooftileConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rooftileConfig.cmake"
    "${PROJECT_BINARY_DIR}/rooftileConfigVersion.cmake" DESTINATION "${package_dir}")

configure_file("${PROJECT_SOURCE_DIR}/cmake/rooftile.pc.in" "${PROJECT_BINARY_DIR}/rooftile.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rooftile.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" FILES_MATCHING PATTERN "*.md")
