package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// objects are the manifests of one installation, by kind.
type objects struct {
	configMaps      map[string]*corev1.ConfigMap
	services        map[string]*corev1.Service
	serviceAccounts map[string]*corev1.ServiceAccount
	policies        map[string]*networkingv1.NetworkPolicy
	monitors        map[string]*monitoringv1.ServiceMonitor
	rules           map[string]*monitoringv1.PrometheusRule
	workload        workload
	job             *batchv1.Job
}

// workload is what a Deployment, a StatefulSet and a Job have in common.
type workload struct {
	kind        string
	replicas    int32
	serviceName string
	selector    *metav1.LabelSelector
	template    corev1.PodTemplateSpec
	strategy    appsv1.DeploymentStrategy
}

// decode decodes a stream of manifests strictly: unknown and repeated keys, and unknown kinds, are errors.
func decode(t *testing.T, manifests []byte) *objects {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	all := &objects{
		configMaps:      map[string]*corev1.ConfigMap{},
		services:        map[string]*corev1.Service{},
		serviceAccounts: map[string]*corev1.ServiceAccount{},
		policies:        map[string]*networkingv1.NetworkPolicy{},
		monitors:        map[string]*monitoringv1.ServiceMonitor{},
		rules:           map[string]*monitoringv1.PrometheusRule{},
	}
	reader := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(manifests)))
	defer reader.Close()
	buffer := make([]byte, len(manifests)+1)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		document := bytes.Clone(buffer[:n])
		if object, _, err := decoder.Decode(document, nil, nil); err != nil {
			t.Errorf("%v in\n%.400s", err, document)
		} else if err := all.add(object); err != nil {
			t.Error(err)
		}
	}
}

func (o *objects) add(object runtime.Object) error {
	switch v := object.(type) {
	case *corev1.ConfigMap:
		return put(o.configMaps, v)
	case *corev1.Service:
		return put(o.services, v)
	case *corev1.ServiceAccount:
		return put(o.serviceAccounts, v)
	case *networkingv1.NetworkPolicy:
		return put(o.policies, v)
	case *monitoringv1.ServiceMonitor:
		return put(o.monitors, v)
	case *monitoringv1.PrometheusRule:
		return put(o.rules, v)
	case *appsv1.Deployment:
		return o.setWorkload(workload{kind: "Deployment", replicas: *v.Spec.Replicas, selector: v.Spec.Selector, template: v.Spec.Template, strategy: v.Spec.Strategy})
	case *appsv1.StatefulSet:
		return o.setWorkload(workload{kind: "StatefulSet", replicas: *v.Spec.Replicas, serviceName: v.Spec.ServiceName, selector: v.Spec.Selector, template: v.Spec.Template})
	case *batchv1.Job:
		o.job = v
		return o.setWorkload(workload{kind: "Job", replicas: *v.Spec.Completions, selector: v.Spec.Selector, template: v.Spec.Template})
	}
	return fmt.Errorf("nobody expects a %T", object)
}

func (o *objects) setWorkload(w workload) error {
	if o.workload.kind != "" {
		return fmt.Errorf("a %s beside a %s", w.kind, o.workload.kind)
	}
	o.workload = w
	return nil
}

func put[T metav1.Object](objects map[string]T, object T) error {
	if _, ok := objects[object.GetName()]; ok {
		return fmt.Errorf("two of %T have the name %s", object, object.GetName())
	}
	objects[object.GetName()] = object
	return nil
}
