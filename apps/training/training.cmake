# orrery::training: the trainer, its recipe, its averages and its files, for programs of any user. The commands of the
# program `orrery`, their options and their progress lines are not in it. Read by CMakeLists.txt.
set(training_sources apps/program/output_file.cpp apps/training/gradient_tree.cpp apps/training/joining.cpp
    apps/training/mpi.cpp apps/training/ranks.cpp apps/training/recipe.cpp apps/training/trainer.cpp
    apps/training/trainer_state.cpp apps/training/training_files.cpp)
list(TRANSFORM training_sources PREPEND ${PROJECT_SOURCE_DIR}/)
add_library(orrery_training STATIC ${training_sources})
add_library(orrery::training ALIAS orrery_training)
set_target_properties(orrery_training PROPERTIES EXPORT_NAME training UNITY_BUILD ${ORRERY_UNITY})
target_compile_options(orrery_training PRIVATE ${ORRERY_QUICK_BUILD})
target_link_libraries(orrery_training PUBLIC orrery_check
                      PRIVATE $<BUILD_INTERFACE:orrery_options> $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
orrery_share_parsed_headers(orrery_training)

# Trainings on several machines need MPI, which one file calls (apps/training/mpi.cpp).
set(ORRERY_MPI AUTO CACHE STRING "Ranks by MPI (apps/training/ranks.h): ON, OFF, or AUTO: if it is installed")
if(NOT ORRERY_MPI STREQUAL OFF)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(ORRERY_MPI STREQUAL ON)
  orrery_require_package(MPI_CXX_FOUND "MPI" "libopenmpi-dev openmpi-bin")
endif()
if(MPI_CXX_FOUND)
  target_link_libraries(orrery_training PRIVATE MPI::MPI_CXX)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/apps/training/mpi.cpp PROPERTIES
                              COMPILE_DEFINITIONS ORRERY_HAS_MPI SKIP_UNITY_BUILD_INCLUSION ON)
endif()
