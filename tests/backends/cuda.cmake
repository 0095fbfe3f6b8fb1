# The stand-in for NVIDIA's driver; the tests open it by its path, the command finds it through
# LD_LIBRARY_PATH=<build>/cuda_mock.
if(SOTTO_CUDA AND SOTTO_SIM AND CMAKE_SYSTEM_NAME STREQUAL Linux)
  add_library(cuda_mock SHARED backends/cuda_mock.c backends/cuda_mock_run.c)
  sotto_warnings(cuda_mock)
  target_include_directories(cuda_mock PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(cuda_mock PRIVATE sotto_static)
  set_target_properties(cuda_mock PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1 NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/cuda_mock)
  target_link_options(cuda_mock PRIVATE LINKER:-soname,libcuda.so.1 LINKER:--exclude-libs,ALL)
  # The same tests as on a real device, which run there when the stand-in is not in the way. Of the conformance table all
  # but the cases of very many rows, which the simulator has as well.
  set(mock_runs "cuda" "networks" "k_types" "int8_products")
  foreach(part products convolutions rows elements moves block_moves masked_rows attention cells grouped_cells narrow_products
      narrow_attention)
    list(APPEND mock_runs "conformance test_${part}")
  endforeach()
  foreach(run ${mock_runs})
    separate_arguments(words UNIX_COMMAND "${run}")
    list(POP_FRONT words program)
    string(REPLACE " test" "" name ${run})
    add_test(NAME backends.cuda_mock_${name} COMMAND test_backends_${program} ${words}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(backends.cuda_mock_${name} PROPERTIES SKIP_RETURN_CODE 77
      ENVIRONMENT "SOTTO_TEST_DEVICE=cuda:0;LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/cuda_mock:$ENV{LD_LIBRARY_PATH}")
  endforeach()
endif()

# What script/cuda-kernels says of the committed kernels. Compiling all of them anew takes minutes: only where the compiler
# is that of the committed files.
if(SOTTO_CUDA AND SOTTO_SH)
  foreach(check sources clang check spills)
    add_test(NAME backends.cuda_kernels_${check}
      COMMAND ${SOTTO_SH} ${PROJECT_SOURCE_DIR}/script/cuda-kernels --${check} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(backends.cuda_kernels_${check} PROPERTIES SKIP_RETURN_CODE 77
      ENVIRONMENT "CC=${CMAKE_C_COMPILER};ARCHS=75 80 90 120")
  endforeach()
endif()
