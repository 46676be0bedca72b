# Installs the headers that a user includes, listed in README.md, and those that they include. Run by `cmake --install`.
cmake_policy(VERSION 3.22)
set(headers core/tensor_ops.h core/machine/parallel.h core/machine/memory.h core/products/precision.h
    core/files/safetensors.h core/files/hash.h autograd/ops.h autograd/apply.h autograd/elementwise.h
    autograd/ops/formulas.h autograd/observer.h autograd/check/first_nan.h nn/nn.h nn/files/files.h
    nn/files/gpt_files.h nn/files/bert_files.h nn/check/proof.h nn/check/leakcheck.h optim/optim.h
    apps/training/training_files.h)
while(headers)
  list(POP_FRONT headers header)
  if(NOT header IN_LIST installed)
    list(APPEND installed ${header})
    get_filename_component(folder ${header} DIRECTORY)
    file(INSTALL ${sources}/${header} DESTINATION ${CMAKE_INSTALL_PREFIX}/include/orrery/${folder})
    file(STRINGS ${sources}/${header} included REGEX "^#include \"")
    list(TRANSFORM included REPLACE "#include \"(.*)\".*" "\\1")
    list(APPEND headers ${included})
  endif()
endwhile()
