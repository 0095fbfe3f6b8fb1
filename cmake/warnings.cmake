function(sotto_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wundef -Wvla -ffp-contract=off -fno-math-errno
    $<$<BOOL:${SOTTO_WERROR}>:-Werror>)
  if(SOTTO_SANITIZE)
    # gcc takes its calls for reads of what is not set yet
    target_compile_options(${target} PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_compile_options(${target} PRIVATE -fsanitize=${SOTTO_SANITIZE} -fno-omit-frame-pointer -g)
    target_link_options(${target} PUBLIC -fsanitize=${SOTTO_SANITIZE})
  endif()
endfunction()
