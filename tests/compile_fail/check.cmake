# A source must be refused by the compiler, for the reason it names, and accepted with -DROOFTILE_CONTROL, which
# takes the mistake out: else a typing error would pass for a refusal.
# cmake -DCOMPILER=... -DROOT=... -DSOURCE=... -P check.cmake
cmake_minimum_required(VERSION 3.25)
file(STRINGS "${SOURCE}" reason REGEX "^// refused: ")
if(NOT reason)
    message(FATAL_ERROR "${SOURCE} has no line '// refused: REGEX' naming the compiler's message")
endif()
string(REGEX REPLACE "^// refused: " "" reason "${reason}")

set(compile "${COMPILER}" -std=c++20 -fsyntax-only "-I${ROOT}")
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${compile} -DROOFTILE_CONTROL "${SOURCE}"
    RESULT_VARIABLE status ERROR_VARIABLE log)
if(NOT status EQUAL 0)
    message(FATAL_ERROR "the control, without the mistake, does not compile:\n${log}")
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${compile} "${SOURCE}"
    RESULT_VARIABLE status ERROR_VARIABLE log)
if(status EQUAL 0)
    message(FATAL_ERROR "the mistake compiles")
endif()
if(NOT log MATCHES "${reason}")
    message(FATAL_ERROR "refused, but not for the reason '${reason}':\n${log}")
endif()
