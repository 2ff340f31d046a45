// Which pods an event requeues, asked of a scheduler that runs as a program of its own.
//
// This file is added to a copy of k8s.io/kubernetes/test/integration/scheduler/queueing at build time. Upstream's test
// pops pods from the queue in its own process and looks into that queue; of a program it can be seen which pods are
// attempted again.
package queueing

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	testutils "k8s.io/kubernetes/test/integration/util"
)

// How long a pod that must not be requeued is watched: longer than the backoff of one second.
const settling = 3 * time.Second

func runExternally(t *testing.T, testCtx *testutils.TestContext, tt *CoreResourceEnqueueTestCase) {
	t.Helper()
	ctx, scheduler := testCtx.Ctx, testCtx.Scheduler
	scheduler.Start(testCtx.SchedulerCtx)
	attempts := func(name string) int {
		pod := tt.Pods[0].DeepCopy()
		pod.Namespace, pod.Name = testCtx.NS.Name, name
		return scheduler.ExternalAttempts(pod)
	}
	before := map[string]int{}
	attempted := func(context.Context) (bool, error) {
		for _, pod := range tt.Pods {
			if attempts(pod.Name) == 0 {
				return false, nil
			}
		}
		return true, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, wait.ForeverTestTimeout, false, attempted); err != nil {
		t.Fatalf("Not all pods were attempted: %v", err)
	}
	time.Sleep(settling)
	for _, pod := range tt.Pods {
		before[pod.Name] = attempts(pod.Name)
	}

	legacyregistry.Reset()
	wantEvents, err := tt.TriggerFn(testCtx)
	if err != nil {
		t.Fatalf("Failed to trigger the event: %v", err)
	}
	handled := func(context.Context) (bool, error) {
		for event, count := range wantEvents {
			labels := map[string]string{"event": event.Label()}
			seen, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "scheduler_event_handling_duration_seconds", labels)
			// The metric is not there before the first event.
			if err != nil || seen.GetAggregatedSampleCount() < count {
				return false, nil
			}
		}
		return true, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, wait.ForeverTestTimeout, false, handled); err != nil {
		t.Fatalf("The events were not seen: %v", err)
	}
	requeued := sets.New[string]()
	equal := func(context.Context) (bool, error) {
		for name := range tt.WantRequeuedPods.Clone().Insert(podNames(tt)...) {
			if attempts(name) > before[name] {
				requeued.Insert(name)
			}
		}
		return requeued.Equal(tt.WantRequeuedPods), nil
	}
	time.Sleep(settling)
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, wait.ForeverTestTimeout, true, equal); err != nil {
		t.Fatalf("Expected pods %v to be attempted again, but %v were", tt.WantRequeuedPods, requeued)
	}
}

func podNames(tt *CoreResourceEnqueueTestCase) []string {
	var names []string
	for _, pod := range tt.Pods {
		names = append(names, pod.Name)
	}
	return names
}
