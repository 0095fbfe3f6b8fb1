# Makes cuda_images.c of the files in images/: the assembler puts their bytes into the object.
file(GLOB images CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/images/*.ptx ${CMAKE_CURRENT_LIST_DIR}/images/*.cubin)
set(assembly)
set(declarations)
set(rows)
set(count 0)
foreach(image ${images})
  get_filename_component(module ${image} NAME_WE)
  if(image MATCHES "\\.cubin$")
    set(arch 90)
    set(machine_code true)
  else()
    file(STRINGS ${image} arch REGEX "^\\.target" LIMIT_COUNT 1)
    string(REGEX REPLACE "^\\.target sm_([0-9]+).*" "\\1" arch "${arch}")
    set(machine_code false)
  endif()
  string(APPEND assembly "IMAGE(\"${count}\", \"${image}\")\n")
  string(APPEND declarations "extern const unsigned char st_cuda_image_${count}[], st_cuda_image_end_${count}[];\n")
  string(APPEND rows
    "    {\"${module}\", ${arch}, ${machine_code}, st_cuda_image_${count}, st_cuda_image_end_${count}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cuda_images.c @ONLY CONTENT [[
/* Made by sources.cmake. */
#include "backends/gpu/api/cuda/images.h"

#if defined(_WIN32)
#define SECTION ".section .rdata,\"dr\"\n"
#define HIDDEN(symbol) ""
#elif defined(__APPLE__)
#define SECTION ".const\n"
#define HIDDEN(symbol) ".private_extern " symbol "\n"
#else
#define SECTION ".section .rodata\n"
#define HIDDEN(symbol) ".hidden " symbol "\n"
#endif
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define SYMBOL(name) TEXT(__USER_LABEL_PREFIX__) name
#define BEGIN(symbol) ".globl " symbol "\n" HIDDEN(symbol) symbol ":\n"
#define IMAGE(number, path)                                                                           \
    __asm__(SECTION ".balign 16\n" BEGIN(SYMBOL("st_cuda_image_" number)) ".incbin \"" path "\"\n"    \
            BEGIN(SYMBOL("st_cuda_image_end_" number)) ".byte 0\n.text\n");
@assembly@
@declarations@
const st_cuda_image st_cuda_images[] = {
@rows@    {0, 0, false, 0, 0}};
const int st_cuda_n_images = @count@;
]])
set_source_files_properties(${PROJECT_BINARY_DIR}/cuda_images.c PROPERTIES OBJECT_DEPENDS "${images}")
list(APPEND SOTTO_GPU_SOURCES ${PROJECT_BINARY_DIR}/cuda_images.c)
