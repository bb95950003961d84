// SPDX-License-Identifier: Apache-2.0

// Applies a rendered MutatingAdmissionPolicy to pods with the evaluator of the API server itself, held to what 1.34 takes: the first
// Kubernetes with such policies in beta.
//
//	admission_policy MANIFESTS <PODS >PODS
//
// MANIFESTS has one policy among other documents. Pods are read and written as a JSON list; one that the policy's
// conditions leave out comes back as it was.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	celgo "github.com/google/cel-go/cel"
	registration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// An API server takes no expressions that the version before it would not understand.
var oldest = version.MajorMinor(1, 33)

// As the API server's own, which would bring half of the API server with it.
type variable registration.Variable

func (v *variable) GetName() string            { return v.Name }
func (v *variable) GetExpression() string      { return v.Expression }
func (v *variable) ReturnTypes() []*celgo.Type { return []*celgo.Type{celgo.AnyType, celgo.DynType} }

type evaluator struct {
	compiler *cel.CompositedCompiler
	matcher  matchconditions.Matcher
	patchers []patch.Patcher
	objects  admission.ObjectInterfaces
}

func readPolicy(path string) (*registration.MutatingAdmissionPolicy, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		if kind.Kind == "MutatingAdmissionPolicy" {
			policy := &registration.MutatingAdmissionPolicy{}
			return policy, yaml.UnmarshalStrict(document, policy)
		}
	}
	return nil, fmt.Errorf("%s has no MutatingAdmissionPolicy", path)
}

func compile(policy *registration.MutatingAdmissionPolicy) (*evaluator, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(oldest))
	if err != nil {
		return nil, err
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	// New: as policies are judged when they are created.
	for i := range policy.Spec.Variables {
		given := (*variable)(&policy.Spec.Variables[i])
		result := compiler.CompileAndStoreVariable(given, options, environment.NewExpressions)
		if result.Error != nil {
			return nil, fmt.Errorf("variable %s: %w", given.Name, result.Error)
		}
	}
	conditions := make([]cel.ExpressionAccessor, len(policy.Spec.MatchConditions))
	for i := range policy.Spec.MatchConditions {
		conditions[i] = (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i])
	}
	compiled := compiler.CompileCondition(conditions, options, environment.NewExpressions)
	fail := registration.Fail // what would be passed over in a cluster is to be seen here
	scheme := runtime.NewScheme()
	if err := core.AddToScheme(scheme); err != nil {
		return nil, err
	}
	made := &evaluator{
		compiler: compiler,
		matcher:  matchconditions.NewMatcher(compiled, &fail, "policy", "mutate", policy.Name),
		objects:  admission.NewObjectInterfacesFromScheme(scheme),
	}
	options.HasPatchTypes = true
	for i, mutation := range policy.Spec.Mutations {
		if mutation.JSONPatch == nil {
			return nil, fmt.Errorf("mutation %d is no JSONPatch", i)
		}
		accessor := &patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression}
		compiled := compiler.CompileMutatingEvaluator(accessor, options, environment.NewExpressions)
		if errors := compiled.CompilationErrors(); len(errors) > 0 {
			return nil, fmt.Errorf("mutation %d: %v", i, errors)
		}
		made.patchers = append(made.patchers, patch.NewJSONPatcher(compiled))
	}
	return made, nil
}

func (e *evaluator) apply(pod *core.Pod) (runtime.Object, error) {
	kind := core.SchemeGroupVersion.WithKind("Pod")
	resource := core.SchemeGroupVersion.WithResource("pods")
	attributes := admission.NewAttributesRecord(pod, nil, kind, pod.Namespace, pod.Name, resource, "",
		admission.Create, nil, false, nil)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: pod}
	ctx := e.compiler.CreateContext(context.Background())
	match := e.matcher.Match(ctx, versioned, nil, nil)
	if match.Error != nil {
		return nil, match.Error
	}
	if !match.Matches {
		return pod, nil
	}
	for i, patcher := range e.patchers {
		request := patch.Request{
			MatchedResource:     schema.GroupVersionResource(resource),
			VersionedAttributes: versioned,
			ObjectInterfaces:    e.objects,
		}
		// As the API server does: variables are of the request, and each mutation sees what the one before it made.
		patched, err := patcher.Patch(ctx, request, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, fmt.Errorf("mutation %d: %w", i, err)
		}
		versioned.VersionedObject = patched
	}
	return versioned.VersionedObject, nil
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: admission_policy MANIFESTS <PODS")
	}
	policy, err := readPolicy(os.Args[1])
	if err != nil {
		return err
	}
	made, err := compile(policy)
	if err != nil {
		return err
	}
	var pods []core.Pod
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&pods); err != nil {
		return err
	}
	results := make([]runtime.Object, len(pods))
	for i := range pods {
		if results[i], err = made.apply(&pods[i]); err != nil {
			return fmt.Errorf("pod %s: %w", pods[i].Name, err)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "admission_policy:", err)
		os.Exit(1)
	}
}
