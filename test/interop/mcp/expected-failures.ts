const PROMPTS = {
  'completion-complete': ['completion-complete'],
  'prompts-get-embedded-resource': ['prompts-get-embedded-resource'],
  'prompts-get-simple': ['prompts-get-simple'],
  'prompts-get-with-args': ['prompts-get-with-args'],
  'prompts-get-with-image': ['prompts-get-with-image'],
  'prompts-list': ['prompts-list'],
};

const RESOURCES = {
  'resources-read-binary': ['resources-read-binary'],
  'resources-read-text': ['resources-read-text'],
  'resources-templates-read': ['resources-templates-read'],
};

const TOOLS = { 'json-schema-2020-12': ['json-schema-2020-12-tool-found'] };

/**
 * Checks of the conformance suite that fail, by revision and scenario. docs/calling/conformance.md has a line with the reason for
 * each scenario.
 */
export const EXPECTED_FAILURES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  '2026-07-28': {
    ...PROMPTS,
    ...RESOURCES,
    ...TOOLS,
    caching: ['sep-2549-prompts-list-caching-hints'],
    'http-custom-header-server-validation': [
      'sep-2243-server-decode-base64',
      'sep-2243-server-no-xmcp-tool',
      'sep-2243-server-reject-invalid-param-chars',
      'sep-2243-server-reject-param-mismatch',
      'sep-2243-server-validate-param-match',
    ],
    'input-required-result-basic-elicitation': ['sep-2322-elicitation-incomplete'],
    'input-required-result-basic-list-roots': ['sep-2322-list-roots-incomplete'],
    'input-required-result-basic-sampling': ['sep-2322-sampling-incomplete'],
    'input-required-result-capability-check': ['sep-2322-respect-client-capabilities'],
    'input-required-result-multiple-input-requests': ['sep-2322-multiple-inputs-incomplete'],
    'input-required-result-non-tool-request': ['sep-2322-non-tool-incomplete'],
    'server-stateless': [
      'sep-2575-missing-capability-http-400',
      'sep-2575-server-rejects-undeclared-capability',
    ],
    'tasks-dispatch-and-envelope': [
      'sep-2663-legacy-task-param-ignored',
      'tasks-result-type-complete-on-non-task-responses',
    ],
    'tasks-lifecycle': ['sep-2663-tasks-get-status-failed', 'tasks-sync-tool-call'],
    'tasks-mrtr-composition': ['sep-2663-mrtr-synchronous-before-task-creation'],
    'tasks-mrtr-input': ['tasks-mrtr-partial-fulfillment'],
    'tasks-request-headers': ['tasks-headers-tolerate-mcp-method-on-tools-call'],
    'tasks-required-task-error': ['sep-2663-server-returns-missing-capability-when-required'],
  },
  '2025-11-25': {
    ...PROMPTS,
    ...RESOURCES,
    ...TOOLS,
    'elicitation-sep1034-defaults': ['elicitation-sep1034-general'],
    'elicitation-sep1330-enums': ['elicitation-sep1330-general'],
    'logging-set-level': ['logging-set-level'],
    'resources-subscribe': ['resources-subscribe'],
    'resources-unsubscribe': ['resources-unsubscribe'],
    'tools-call-elicitation': ['tools-call-elicitation'],
    'tools-call-sampling': ['tools-call-sampling'],
    'tools-call-with-logging': ['tools-call-with-logging'],
  },
};
