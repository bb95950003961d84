# SPDX-License-Identifier: Apache-2.0
# Apache Arrow C++ with Parquet: ArrowParquet::ArrowParquet, ArrowParquet_FOUND, ArrowParquet_VERSION.
#
# Looked for, in this order: in NEURONTRACE_ARROW_ROOT (a folder with include/ and the libraries, beside it or in lib/),
# in the wheel of pyarrow that scripts/setup put into build/python, in the system. A wheel's libraries have names with
# their version alone, which its headers say.
set(NEURONTRACE_ARROW_ROOT "" CACHE PATH "Folder with Apache Arrow C++: include/ and libarrow, libparquet")
unset(ArrowParquet_INCLUDE_DIR CACHE)  # scripts/setup may have been run since
unset(ArrowParquet_arrow CACHE)
unset(ArrowParquet_parquet CACHE)
find_path(ArrowParquet_INCLUDE_DIR parquet/arrow/writer.h
  HINTS ${NEURONTRACE_ARROW_ROOT}/include ${CMAKE_SOURCE_DIR}/build/python/packages/pyarrow/include)
if(ArrowParquet_INCLUDE_DIR)
  file(STRINGS ${ArrowParquet_INCLUDE_DIR}/arrow/util/config.h config REGEX "_VERSION_STRING|_SO_VERSION")
  string(REGEX REPLACE ".*ARROW_VERSION_STRING \"([^\"]*)\".*" "\\1" ArrowParquet_VERSION "${config}")
  string(REGEX REPLACE ".*ARROW_SO_VERSION \"([^\"]*)\".*" "\\1" so_version "${config}")
  get_filename_component(root ${ArrowParquet_INCLUDE_DIR} DIRECTORY)
  foreach(name arrow parquet)
    # Never another Arrow's library than the one whose headers were found.
    find_library(ArrowParquet_${name} NAMES lib${name}.so.${so_version} NO_DEFAULT_PATH
      PATHS ${root} ${root}/lib ${root}/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${root}/lib64)
  endforeach()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ArrowParquet
  REQUIRED_VARS ArrowParquet_parquet ArrowParquet_arrow ArrowParquet_INCLUDE_DIR VERSION_VAR ArrowParquet_VERSION)
mark_as_advanced(ArrowParquet_INCLUDE_DIR ArrowParquet_arrow ArrowParquet_parquet)

if(ArrowParquet_FOUND AND NOT TARGET ArrowParquet::ArrowParquet)
  add_library(ArrowParquet::arrow UNKNOWN IMPORTED)
  set_target_properties(ArrowParquet::arrow PROPERTIES IMPORTED_LOCATION ${ArrowParquet_arrow})
  add_library(ArrowParquet::ArrowParquet UNKNOWN IMPORTED)
  set_target_properties(ArrowParquet::ArrowParquet PROPERTIES
    IMPORTED_LOCATION ${ArrowParquet_parquet}
    INTERFACE_INCLUDE_DIRECTORIES ${ArrowParquet_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ArrowParquet::arrow)
endif()
