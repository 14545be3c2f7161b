#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rpm.sh VERSION ARCHIVE FOLDER: RPM packages of the source archive, into the folder. Options of rpmbuild in RPMBUILD_OPTIONS;
# where the packages that it needs are installed by another package manager, --nodeps is one.
set -eu

mkdir -p "$3"
folder=$(realpath "$3")
rm -f "$folder"/*.rpm
# shellcheck disable=SC2086 # a list of options
rpmbuild -bb ${RPMBUILD_OPTIONS:-} --define "upstream $1" --define "_topdir $folder/work" \
	--define "_sourcedir $(realpath "$(dirname "$2")")" --define "_rpmdir $folder" --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
	--define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' --define '_buildhost localhost' \
	"$(dirname "$0")/rpm/xputrace.spec"
rm -rf "$folder/work"
