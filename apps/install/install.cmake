# What `cmake --install` and `cpack` copy, and where: README.md in this folder. Read by CMakeLists.txt.
include(CMakePackageConfigHelpers)

# The library, its headers, and what find_package and pkg-config read. No path in them is absolute: the folder may be
# moved.
install(TARGETS orrery_library orrery_check orrery_training EXPORT orrery ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(level ${levels})  # core/machine/levels.cmake
  install(TARGETS orrery_${level} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${level})
endforeach()
install(CODE "set(sources \"${PROJECT_SOURCE_DIR}\")")
install(SCRIPT apps/install/headers.cmake)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/orrery)
install(EXPORT orrery NAMESPACE orrery:: FILE orrery-targets.cmake DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/orrery-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(apps/install/orrery-config.cmake orrery-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/orrery-config.cmake ${PROJECT_BINARY_DIR}/orrery-config-version.cmake
        DESTINATION ${package_folder})
file(RELATIVE_PATH prefix_from_pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
if(levels)  # the library is shared: programs of pkg-config's users are to find it without LD_LIBRARY_PATH
  set(rpath_for_pkgconfig "-Wl,-rpath,\${libdir}")
endif()
list(JOIN loop_options " " loop_options_for_pkgconfig)
string(REGEX REPLACE "\\$<[^:]*:[^:]*:([^>]*)>" "\\1" loop_options_for_pkgconfig "${loop_options_for_pkgconfig}")
configure_file(apps/install/orrery.pc.in orrery.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/orrery.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/orrery RENAME copyright)

# The program, and the files that it reads (apps/program/shipped_files.h), under their paths in the repository.
if(ORRERY_PROGRAMS OR ORRERY_TESTS)
  file(RELATIVE_PATH libraries_from_programs ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(orrery_program PROPERTIES INSTALL_RPATH $ORIGIN/${libraries_from_programs})
  install(TARGETS orrery_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set(shared ${CMAKE_INSTALL_DATADIR}/orrery)
  install(DIRECTORY apps/data DESTINATION ${shared}/apps PATTERN "*.cpp" EXCLUDE PATTERN "*.h" EXCLUDE
          PATTERN README.md EXCLUDE)
  file(GLOB pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} apps/show/*/page.html apps/show/*/*.js
       apps/program/*.js)
  foreach(file ${pages} apps/show/trace/model_pass.cpp)
    get_filename_component(folder ${file} DIRECTORY)
    install(FILES ${file} DESTINATION ${shared}/${folder})
  endforeach()
  foreach(folder autograd/ops nn/attention nn/layers nn/models)  # whose lines `orrery trace` shows
    install(DIRECTORY ${folder}/ DESTINATION ${shared}/${folder} FILES_MATCHING PATTERN "*.h" PATTERN "*.cpp")
  endforeach()

  # The manual page is made of the program's help when it is installed, where help2man is there.
  set(manual ${PROJECT_BINARY_DIR}/orrery.1)
  install(CODE "file(REMOVE \"${manual}\")
    find_program(HELP2MAN help2man NO_CACHE)
    if(HELP2MAN)
      execute_process(COMMAND \${HELP2MAN} --no-info --section 1 --output \"${manual}\"
                      \"$<TARGET_FILE:orrery_program>\" COMMAND_ERROR_IS_FATAL ANY)
    endif()")
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  install(FILES apps/install/orrery.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME orrery)
  install(FILES apps/install/orrery.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  # Debian's zsh looks for packages' files in a folder of its own.
  foreach(folder site-functions vendor-completions)
    install(FILES apps/install/orrery.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${folder} RENAME _orrery)
  endforeach()
endif()

# A package for Debian, by `cpack` in the build folder.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME orrery)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Orrery authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Reverse-mode autograd and the Transformer, from scratch in plain C++20")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-openmp | libopenblas0-pthread")  # the serial build is refused
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, libopenblas-openmp-dev, cmake, pkg-config")
include(CPack)
