# Public headers compile alone, in C11 and in C++17, with both compilers.
foreach(compiler_standard gcc:c11 clang:c11 g++:c++17 clang++:c++17)
  string(REPLACE ":" ";" pair ${compiler_standard})
  list(GET pair 0 compiler)
  list(GET pair 1 standard)
  add_test(NAME headers_${compiler}_${standard}
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/headers.sh ${compiler} ${standard}
                   ${PROJECT_SOURCE_DIR}/include)
  set_tests_properties(headers_${compiler}_${standard} PROPERTIES SKIP_RETURN_CODE 77 LABELS source)
endforeach()
