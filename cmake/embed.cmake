# Turns text files into the C file that src/backends/gpu/gpu_source.c reads; a script of CMake and not a program, so that
# it works when compiling for another system.
#   cmake -DOUT=gpu_text.c -DNAMES=<names, ;> -DFILES=<paths, ;> -P embed.cmake
set(arrays "")
set(rows "")
set(i 0)
foreach(name file IN ZIP_LISTS NAMES FILES)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char text_${i}[] = {${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", (const char *)text_${i}, sizeof text_${i} - 1},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by embed.cmake. */\n#include \"backends/gpu/gpu_source.h\"\n\n${arrays}\n"
  "const st_gpu_text st_gpu_texts[] = {\n${rows}};\nconst int st_gpu_n_texts = ${i};\n")
