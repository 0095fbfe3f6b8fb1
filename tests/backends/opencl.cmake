# The tests that run on OpenCL devices keep what drivers and the library build in the build folder, not in the user's.
set(cache "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache")
foreach(test backends.opencl backends.opencl_small backends.conformance backends.k_types backends.int8_products
    backends.word_products backends.networks backends.top_rope_window golden.opencl)
  if(TEST ${test})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "${cache}")
  endif()
endforeach()

# Small shapes of every kernel under a checker of races, and on Intel's runtime with subgroups of every size.
if(SOTTO_SH AND TARGET test_backends_opencl_small)
  sotto_add_test(backends.opencl_races ${SOTTO_SH} ${CMAKE_CURRENT_SOURCE_DIR}/backends/opencl_races.sh
    ${PROJECT_BINARY_DIR}/opencl_races $<TARGET_FILE:test_backends_opencl_small>)
  foreach(name opencl opencl_small)
    sotto_add_test(backends.${name}_intel ${SOTTO_SH} ${CMAKE_CURRENT_SOURCE_DIR}/backends/opencl_intel.sh
      ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/cache_intel $<TARGET_FILE:test_backends_${name}>)
  endforeach()
endif()
