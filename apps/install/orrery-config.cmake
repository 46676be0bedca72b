# Read by find_package(orrery): finds what the library is linked to, then names orrery::orrery, orrery::check and orrery::training.
include(CMakeFindDependencyMacro)
find_dependency(OpenMP COMPONENTS CXX)

find_library(ORRERY_OPENBLAS openblas PATH_SUFFIXES openblas-openmp openblas-pthread)
mark_as_advanced(ORRERY_OPENBLAS)
if(NOT ORRERY_OPENBLAS)
  set(orrery_FOUND FALSE)
  set(orrery_NOT_FOUND_MESSAGE "OpenBLAS was not found. On Debian and Ubuntu: apt-get install libopenblas-openmp-dev")
  return()
endif()
if(NOT TARGET orrery::openblas)
  add_library(orrery::openblas UNKNOWN IMPORTED)
  set_target_properties(orrery::openblas PROPERTIES IMPORTED_LOCATION "${ORRERY_OPENBLAS}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/orrery-targets.cmake)
