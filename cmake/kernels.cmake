# The text of the GPU kernels and of the preludes goes into the library, for interfaces that compile at run time.
function(sotto_embed_kernels sources)
  file(GLOB kernels CONFIGURE_DEPENDS src/backends/gpu/kernels/*.krn)
  set(files ${kernels} ${PROJECT_SOURCE_DIR}/src/backends/gpu/kernels/params.h)
  foreach(file ${files})
    get_filename_component(name ${file} NAME)
    list(APPEND names ${name})
  endforeach()
  file(GLOB preludes CONFIGURE_DEPENDS src/backends/gpu/api/*/prelude.h)
  foreach(file ${preludes})
    file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR}/src/backends/gpu/api ${file})
    list(APPEND files ${file})
    list(APPEND names ${name})
  endforeach()
  set(out ${PROJECT_BINARY_DIR}/gpu_text.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} "-DOUT=${out}" "-DNAMES=${names}" "-DFILES=${files}"
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Putting the GPU kernels' text into gpu_text.c" VERBATIM)
  set(${sources} ${${sources}} ${out} PARENT_SCOPE)
endfunction()
