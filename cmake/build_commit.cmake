# SPDX-License-Identifier: Apache-2.0
# Run at each build: writes OUTPUT, the one file that knows the commit, where it has changed.
#   cmake -DSOURCE=… -DOUTPUT=… [-DCOMMIT=…] -P cmake/build_commit.cmake
# COMMIT is for builds without the repository, as of an unpacked source archive.
if(NOT COMMIT)
  # A folder within some other repository must not take that one's commit.
  execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
    OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH ${SOURCE} source)
  if(top STREQUAL source)
    execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
if(NOT COMMIT MATCHES "^[0-9A-Za-z._-]+$")
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// SPDX-License-Identifier: Apache-2.0
#include "lib/base/build_commit.h"

namespace neurontrace {

const char* const kBuildCommit = "@COMMIT@";

}  // namespace neurontrace
]] @ONLY)
