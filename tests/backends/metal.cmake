# The stand-in for Apple's Objective-C runtime and Metal; the tests open it by its path, the command finds it through
# LD_LIBRARY_PATH=<build>/metal_mock.
find_program(SOTTO_CXX NAMES g++ clang++)
if(SOTTO_METAL AND SOTTO_SIM AND SOTTO_CXX AND CMAKE_SYSTEM_NAME STREQUAL Linux)
  set(metal_mock_dir ${PROJECT_BINARY_DIR}/metal_mock)
  add_library(metal_mock SHARED backends/metal_mock.c backends/metal_mock_run.c)
  sotto_warnings(metal_mock)
  target_include_directories(metal_mock PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(metal_mock PRIVATE METAL_MOCK_COMPILER="${SOTTO_CXX}"
    METAL_MOCK_SHIM="${CMAKE_CURRENT_SOURCE_DIR}/backends/metal_shim/run" METAL_MOCK_CACHE="${metal_mock_dir}/compiled")
  target_link_libraries(metal_mock PRIVATE sotto_static ${CMAKE_DL_LIBS})
  add_library(metal_mock_link SHARED backends/metal_mock_link.c)
  target_link_options(metal_mock_link PRIVATE LINKER:--no-as-needed)
  target_link_libraries(metal_mock_link PRIVATE metal_mock)
  set_target_properties(metal_mock PROPERTIES PREFIX "" OUTPUT_NAME libobjc.A SUFFIX .dylib
    LIBRARY_OUTPUT_DIRECTORY ${metal_mock_dir})
  set_target_properties(metal_mock_link PROPERTIES PREFIX "" OUTPUT_NAME libMetal SUFFIX .dylib
    LIBRARY_OUTPUT_DIRECTORY ${metal_mock_dir})

  # The operations, through the backend.
  foreach(part products convolutions rows elements moves block_moves masked_rows attention cells grouped_cells two_at_once halves)
    sotto_add_test(backends.metal_${part} test_backends_conformance test_${part})
    set_property(TEST backends.metal_${part} APPEND PROPERTY
      ENVIRONMENT "LD_LIBRARY_PATH=${metal_mock_dir};SOTTO_TEST_DEVICE=metal:0")
  endforeach()
  sotto_add_test(backends.metal_k_types test_backends_k_types)
  set_property(TEST backends.metal_k_types APPEND PROPERTY
    ENVIRONMENT "LD_LIBRARY_PATH=${metal_mock_dir};SOTTO_TEST_DEVICE=metal:0")
  # A whole model, on the stand-in and split with the CPU.
  sotto_add_test(backends.metal_model test_backends_split on_each_kind_of_device)
  set_tests_properties(backends.metal_model PROPERTIES FIXTURES_REQUIRED tiny_models)
  set_property(TEST backends.metal_model APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${metal_mock_dir}")
endif()

# The text itself, for Metal's compiler, which is not here.
find_program(SOTTO_CLANG NAMES clang clang-14 clang-15 clang-16 clang-17 clang-18 clang-19)
if(SOTTO_PYTHON AND SOTTO_CLANG)
  sotto_add_test(backends.metal_text ${SOTTO_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/backends/metal_text.py ${PROJECT_SOURCE_DIR}
    ${SOTTO_CLANG})
endif()
