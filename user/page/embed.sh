#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# embed.sh STYLE.css SCRIPT.js...: writes to standard output the C source that holds the style and the scripts of pages, as
# user/page/page.h declares. The scripts, in this order, become one, which shares no name with anything.
set -eu

# What would end the element that the text stands in.
if grep -l -i -e '</script' -e '</style' -e '<!--' "$@" >&2; then
	echo "embed.sh: these have an end of their element" >&2
	exit 1
fi

bytes() {
	od -An -v -tx1 | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'
}

style=$1
shift
echo '/* SPDX-License-Identifier: BSD-2-Clause */'
echo '/* Made by user/page/embed.sh. */'
echo '#include "page/page.h"'
echo
echo 'static const unsigned char style[] = {'
bytes <"$style"
echo '};'
echo 'static const unsigned char script[] = {'
{
	echo '"use strict";'
	echo '(() => {'
	cat "$@"
	echo '})();'
} | bytes
echo '};'
echo 'const struct page_asset page_style = { style, sizeof(style) };'
echo 'const struct page_asset page_script = { script, sizeof(script) };'
