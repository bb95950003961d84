// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {commonRowName, kSectionNames, sectionLabel, sectionOf} from './track_kinds';

test('each thread that annotates has a row in a section of its own', () => {
  assert.equal(sectionOf('annotation', 'tid7-annotation'), 'annotation');
  assert.equal(sectionLabel('annotation'), 'Annotations');
  assert.equal(commonRowName('tid7-annotation'), 'annotation');
  assert.ok(kSectionNames.some(([name]) => name === 'annotation'));
  assert.equal(sectionOf('runtime', 'gid1-nc0-tid7-neuron_rt'), 'runtime');
});
