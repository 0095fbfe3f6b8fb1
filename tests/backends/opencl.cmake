# The tests that run on OpenCL devices keep what drivers and the library build in the build folder, not in the user's.
foreach(name opencl opencl_small conformance networks top_rope_window)
  if(TEST backends.${name})
    set_property(TEST backends.${name} APPEND PROPERTY ENVIRONMENT "XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/cache")
  endif()
endforeach()

# Small shapes of every kernel under a checker of races.
if(SOTTO_SH AND TARGET test_backends_opencl_small)
  sotto_add_test(backends.opencl_races ${SOTTO_SH} ${CMAKE_CURRENT_SOURCE_DIR}/backends/opencl_races.sh
    ${PROJECT_BINARY_DIR}/opencl_races $<TARGET_FILE:test_backends_opencl_small>)
endif()
