# What find_package(rooftile) and pkg-config find. Headers keep their paths from the repository's root and lie
# in a folder of their own, so that <prefix>/include gains one name.
include(CMakePackageConfigHelpers)

set(installed rooftile_model)
if(TARGET rooftile)
    list(APPEND installed rooftile)
endif()
if(TARGET rooftile_shared)
    install(TARGETS rooftile_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET rooftile_cli)
    install(TARGETS rooftile_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS ${installed} EXPORT rooftileTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
foreach(header IN LISTS ROOFTILE_PUBLIC_HEADERS)
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
