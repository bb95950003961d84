// SPDX-License-Identifier: Apache-2.0
// Commands that a person copies into a shell. All functions are pure.

// One word of a POSIX shell, whatever is in it.
export function shellWord(text: string): string {
  return /^[A-Za-z0-9._+=@,:\/-]+$/.test(text) ? text : `'${text.replace(/'/g, '\'\\\'\'')}'`;
}

export interface ExportChoice {
  captureId: string;
  format: string;
  fromNs: string;  // Unix nanoseconds; empty: open
  toNs: string;
  gids: string;
  streams: string;  // the command line has no option for them
}

const kPaths: Record<string, string> = {
  perfetto: 'capture.pftrace',
  'chrome-json': 'capture.trace.json',
  json: 'capture.json',
  events: 'events.jsonl',
  'summary-text': 'summary.txt',
  'summary-json': 'summary.json',
  parquet: 'capture.parquet',
  xspace: 'xspace'
};

// The command that writes the same file, or the same directory.
export function exportCommand(choice: ExportChoice): string {
  const words = ['neurontrace', 'export', choice.captureId, '--format', choice.format];
  if (choice.fromNs) words.push('--from', choice.fromNs);
  if (choice.toNs) words.push('--to', choice.toNs);
  if (choice.gids) words.push('--worker-gid', choice.gids);
  words.push('-o', kPaths[choice.format] ?? 'capture');
  return words.map(shellWord).join(' ');
}

export interface ArtifactFile {
  path: string;
  kind: string;
}

// How the vendor's viewer opens a downloaded artifact, and what to know. `all` are the capture's artifacts.
//
// A device profile is opened together with the model that it is of. Names of the form HASH_instid_K_vnc_N.ntff belong
// to the model whose name has the same hash (AWS Neuron documentation, "Capture and Launch a Profile in Neuron
// Explorer"); other names do not tell.
export function artifactCommand(file: ArtifactFile, all: ArtifactFile[]): {command: string, note: string} {
  if (file.kind === 'ntff') {
    const models = all.filter(other => other.kind === 'neff'), model = modelOf(file, models);
    return {
      command: `neuron-explorer view -n ${model ? shellWord(nameOf(model.path)) : 'MODEL.neff'} -s ${
          shellWord(nameOf(file.path))}`,
      note: model         ? 'Download both files into one directory.'
          : models.length ? 'Its name does not tell its model: MODEL.neff is the one that this process ran.'
                          : 'The capture has no model: MODEL.neff is the one that this process ran.'
    };
  }
  if (file.kind === 'neff') {
    const profile = all.find(other => other.kind === 'ntff' && modelOf(other, [file]) === file);
    return {
      command: `neuron-explorer view -n ${shellWord(nameOf(file.path))} -s ${
          profile ? shellWord(nameOf(profile.path)) : 'PROFILE.ntff'}`,
      note: profile ? 'Download both files into one directory.' : 'A model is opened with a device profile of it.'
    };
  }
  const slash = file.path.lastIndexOf('/'), directory = slash > 0 ? file.path.slice(0, slash) : '.';
  return {
    command: `neuron-explorer view -d ${shellWord(directory.split('/')[0])}`,
    note: `Download the files of ${directory} into a directory of this name first.`
  };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function modelOf(profile: ArtifactFile, models: ArtifactFile[]): ArtifactFile|undefined {
  const hash = /^(\w+?)_instid_\d+_vnc_\d+\.ntff$/.exec(nameOf(profile.path))?.[1];
  if (!hash) return undefined;
  return models.find(model => nameOf(model.path).replace(/\.neff$/, '').split('_').includes(hash));
}
