// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {Artifact, ArtifactList} from '../api/api_types';
import {artifactCommand} from '../model/command_text';
import {formatBytes, formatCount} from '../model/text_format';
import {parseCount} from '../model/time_base';
import {copyLine} from '../widgets/copy_line';
import {DataTable} from '../widgets/data_table';
import {button, element, notice} from '../widgets/dom';

import {DownloadList} from './download_list';

// The capture's files of the vendor's profiler, each with the command that opens it in the vendor's viewer.
export function artifactSection(
    api: ApiClient, captureId: string, list: ArtifactList, downloads: DownloadList): HTMLElement {
  const artifacts = list.artifacts ?? [], missing = list.missing ?? [];
  const notListed = parseCount(list.notListed), hidden = parseCount(list.hidden);
  const notes = [
    notListed ? `${formatCount(notListed)} more are not listed; neurontrace export ${
                    captureId} --to DIRECTORY delivers all of them.`
              : '',
    hidden ? `${formatCount(hidden)} more are not certainly files of your workers, and are hidden.` : ''
  ].filter(text => text);
  return element(
      'section', {class: 'artifacts', 'aria-labelledby': 'artifacts-title'},
      element('h2', {id: 'artifacts-title'}, `Artifacts (${formatCount(artifacts.length)})`),
      artifacts.length + missing.length + notListed + hidden === 0 &&
          notice(
              'empty', 'This capture has no files of the vendor’s profiler',
              'Jobs write them with NEURON_RT_INSPECT_ENABLE=1, and agents collect them from the directories of ' +
                  '--inspect-dir.'),
      artifacts.length > 0 && table(api, captureId, artifacts, downloads),
      ...notes.map(text => element('p', {class: 'faint'}, text)), missing.length > 0 && lost(list));
}

function table(api: ApiClient, captureId: string, artifacts: Artifact[], downloads: DownloadList): HTMLElement {
  const files = artifacts.map(artifact => ({path: artifact.path ?? '', kind: artifact.kind ?? ''}));
  const made = new DataTable<Artifact>(
      [
        {title: 'File', value: artifact => artifact.path ?? '', style: 'wide'},
        {title: 'Kind', value: artifact => artifact.kind ?? ''},
        {
          title: 'Size',
          numeric: true,
          value: artifact => parseCount(artifact.bytes),
          show: artifact => formatBytes(parseCount(artifact.bytes))
        },
        {title: 'Instance', value: artifact => artifact.instanceId ?? ''},
        {
          title: 'Opens with',
          style: 'wide',
          sortable: false,
          value: artifact => commandOf(artifact, files).command,
          show: artifact => {
            const {command, note} = commandOf(artifact, files);
            return copyLine(command, note).element;
          }
        },
        {
          title: 'Download',
          sortable: false,
          value: () => '',
          show: artifact => button(
              'Download',
              () => downloads.start(
                  nameOf(artifact), name => api.artifactAddress(captureId, {sha256: artifact.sha256, download: name})),
              {'aria-label': `Download ${nameOf(artifact)}`})
        },
      ],
      'Artifacts', 0);
  made.show(artifacts);
  return made.element;
}

function commandOf(artifact: Artifact, all: {path: string, kind: string}[]): {command: string, note: string} {
  return artifactCommand({path: artifact.path ?? '', kind: artifact.kind ?? ''}, all);
}

function nameOf(artifact: Artifact): string {
  const path = artifact.path ?? '';
  return path.slice(path.lastIndexOf('/') + 1);
}

function lost(list: ArtifactList): HTMLElement {
  const missing = new DataTable<{path?: string, bytes?: string, reason?: string}>(
      [
        {title: 'Missing file', value: file => file.path ?? '', style: 'wide'},
        {
          title: 'Size',
          numeric: true,
          value: file => parseCount(file.bytes),
          show: file => formatBytes(parseCount(file.bytes))
        },
        {title: 'Reason', value: file => file.reason ?? '', style: 'wide'},
      ],
      'Missing artifacts', 0);
  missing.show(list.missing ?? []);
  return missing.element;
}
