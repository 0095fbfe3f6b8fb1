# Headers, both libraries, sotto.pc and the CMake package. The programs install themselves.
include(CMakePackageConfigHelpers)
set(SOTTO_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)

install(DIRECTORY include/sotto DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE THIRD_PARTY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS ${SOTTO_LIBRARIES} EXPORT sotto
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT sotto NAMESPACE sotto:: FILE sottoTargets.cmake DESTINATION ${SOTTO_PACKAGE_DIR})

configure_package_config_file(cmake/sottoConfig.cmake.in ${PROJECT_BINARY_DIR}/sottoConfig.cmake
  INSTALL_DESTINATION ${SOTTO_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sottoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sottoConfig.cmake ${PROJECT_BINARY_DIR}/sottoConfigVersion.cmake
  DESTINATION ${SOTTO_PACKAGE_DIR})

# The prefix is found from where sotto.pc lies, so that an installed tree can be moved.
file(RELATIVE_PATH SOTTO_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/sotto.pc.in ${PROJECT_BINARY_DIR}/sotto.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sotto.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
