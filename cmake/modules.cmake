# cb_add_module(NAME SOURCES...): one kernel module, a shared object that needs nothing of coldbench.
# Instruction-set flags follow from the file name: cpu_avx2.c, cpu_avx512.c, cpu_avx512vnni.c. Files of
# another architecture are left out.
set(CB_X86 0)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(CB_X86 1)
endif()
include(cmake/source_note.cmake)
set(CB_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(CB_FLAGS_avx512 ${CB_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(CB_FLAGS_avx512vnni ${CB_FLAGS_avx512} -mavx512vnni)

function(cb_add_module name)
  set(sources)
  foreach(source ${ARGN})
    get_filename_component(base ${source} NAME_WE)
    if(base MATCHES "^cpu_(avx.*)$")
      if(NOT CB_X86)
        continue()
      endif()
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${CB_FLAGS_${CMAKE_MATCH_1}}")
    endif()
    list(APPEND sources ${source})
  endforeach()
  add_library(module_${name} MODULE ${sources})
  target_include_directories(module_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  # -O3 for the loops; no contraction, so that a definition's f64 reference is exactly what it says.
  target_compile_options(module_${name} PRIVATE -ffp-contract=off $<$<CONFIG:Release>:-O3>)
  set_target_properties(module_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
  target_compile_definitions(module_${name} PRIVATE CB_X86=${CB_X86})
  cb_add_source_note(module_${name} ${sources})
endfunction()

# Every folder of src/kernel is a module of the suite.
set(CB_MODULES)
file(GLOB entries CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernel/*/kernel.c)
foreach(entry ${entries})
  get_filename_component(folder ${entry} DIRECTORY)
  get_filename_component(name ${folder} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c)
  cb_add_module(${name} ${sources})
  list(APPEND CB_MODULES ${name})
endforeach()
