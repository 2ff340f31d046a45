// The parity oracle: reads cases (one JSON object a line, the format of tests/parity/golden/README.md) from standard
// input and writes what kube-scheduler's own code decides for each, in the shape of `expect`. It starts a scheduler over
// a fake client, lets its informers fill the cache, and asks the framework of the profile that the pod names.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

type testCase struct {
	ID      string            `json:"id"`
	Config  json.RawMessage   `json:"config"`
	Objects []json.RawMessage `json:"objects"`
	Pod     json.RawMessage   `json:"pod"`
	Pods    []json.RawMessage `json:"pods"`
}

type object = map[string]any

func main() {
	gates := flag.String("feature-gates", "", "gates to set, as kube-scheduler takes them")
	flag.Parse()
	if err := utilfeature.DefaultMutableFeatureGate.Set(*gates); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(2)
	}
	metrics.Register()
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<28)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, "oracle:", err)
			os.Exit(1)
		}
		result, err := evaluate(&c)
		answer := object{"id": c.ID, "result": result}
		var failed *failure
		if errors.As(err, &failed) {
			answer["failures"] = failed.messages
		} else if err != nil {
			answer["error"] = err.Error()
		}
		_ = out.Encode(answer)
	}
}

// An attempt that ended in an error. Filters run in parallel, so kube-scheduler reports any one of the messages.
type failure struct{ messages []string }

func (f *failure) Error() string { return f.messages[0] }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

type world struct {
	ctx      context.Context
	client   *fake.Clientset
	sched    *scheduler.Scheduler
	snapshot *internalcache.Snapshot
	pdbs     []*policyv1.PodDisruptionBudget
}

func evaluate(c *testCase) (any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := build(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Pods != nil {
		return w.sequence(c.Pods)
	}
	pod, err := decodePod(c.Pod)
	if err != nil {
		return nil, err
	}
	return w.single(pod)
}

func build(ctx context.Context, c *testCase) (*world, error) {
	configObject, _, err := configscheme.Codecs.UniversalDecoder().Decode(c.Config, nil, nil)
	if err != nil {
		return nil, err
	}
	config := configObject.(*schedulerapi.KubeSchedulerConfiguration)
	var objects []runtime.Object
	w := &world{ctx: ctx}
	for _, raw := range c.Objects {
		decoded, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			return nil, err
		}
		if pod, ok := decoded.(*v1.Pod); ok && (pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed) {
			continue
		}
		if pdb, ok := decoded.(*policyv1.PodDisruptionBudget); ok {
			w.pdbs = append(w.pdbs, pdb)
		}
		objects = append(objects, decoded)
	}
	if c.Pod != nil {
		pod, err := decodePod(c.Pod)
		if err != nil {
			return nil, err
		}
		if pod.Spec.NodeName == "" {
			objects = append(objects, pod)
		}
	}
	client := fake.NewClientset(objects...)
	w.client = client
	factory := informers.NewSharedInformerFactory(client, 0)
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(100000) }
	w.sched, err = scheduler.New(ctx, client, factory, nil, profile.RecorderFactory(recorder),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithParallelism(1))
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := w.sched.WaitForHandlersSync(ctx); err != nil {
		return nil, err
	}
	for _, f := range w.sched.Profiles {
		w.snapshot = f.SnapshotSharedLister().(*internalcache.Snapshot)
	}
	return w, w.waitForCache(objects)
}

// The cache is filled by event handlers; wait until every node and assigned pod is there.
func (w *world) waitForCache(objects []runtime.Object) error {
	nodes, pods := 0, 0
	for _, o := range objects {
		switch t := o.(type) {
		case *v1.Node:
			nodes++
		case *v1.Pod:
			if t.Spec.NodeName != "" {
				pods++
			}
		}
	}
	for i := 0; i < 500; i++ {
		count, err := w.sched.Cache.PodCount()
		if err != nil {
			return err
		}
		if w.sched.Cache.NodeCount() >= nodes && count >= pods {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func decodePod(raw json.RawMessage) (*v1.Pod, error) {
	decoded, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		return nil, err
	}
	return decoded.(*v1.Pod), nil
}

func statusOf(s *fwk.Status) object {
	reasons := append([]string{}, s.Reasons()...)
	sort.Strings(reasons)
	return object{"code": s.Code().String(), "plugin": s.Plugin(), "reasons": reasons}
}

type outcome struct {
	prefilter *fwk.Status
	rejected  *framework.NodeToStatus
	feasible  []fwk.NodeInfo
	diagnosis framework.Diagnosis
}

func (w *world) filter(f framework.Framework, state fwk.CycleState, pod *v1.Pod) (*outcome, error) {
	if err := w.sched.Cache.UpdateSnapshot(klog.Background(), w.snapshot); err != nil {
		return nil, err
	}
	all, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	o := &outcome{diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}}
	restriction, status, plugins := f.RunPreFilterPlugins(w.ctx, state, pod)
	o.diagnosis.UnschedulablePlugins = plugins
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return nil, &failure{[]string{status.AsError().Error()}}
		}
		o.prefilter = status
		o.diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		o.diagnosis.PreFilterMsg = status.Message()
		return o, nil
	}
	nodes := all
	if !restriction.AllNodes() {
		nodes = nil
		for _, n := range all {
			if restriction.NodeNames.Has(n.Node().Name) {
				nodes = append(nodes, n)
			}
		}
		o.diagnosis.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins))))
	}
	failures := sets.New[string]()
	for _, n := range nodes {
		s := f.RunFilterPluginsWithNominatedPods(w.ctx, state, pod, n)
		if s.IsSuccess() {
			o.feasible = append(o.feasible, n)
		} else if !s.IsRejected() {
			failures.Insert(s.AsError().Error())
		} else {
			o.diagnosis.NodeToStatus.Set(n.Node().Name, s)
		}
	}
	if len(failures) > 0 {
		return nil, &failure{sets.List(failures)}
	}
	return o, nil
}

func (w *world) message(o *outcome, pod *v1.Pod) string {
	return (&framework.FitError{Pod: pod, NumAllNodes: w.snapshot.NumNodesInPlacement(), Diagnosis: o.diagnosis}).Error()
}

func (w *world) single(pod *v1.Pod) (any, error) {
	f := w.sched.Profiles[pod.Spec.SchedulerName]
	if f == nil {
		return nil, fmt.Errorf("no profile %q", pod.Spec.SchedulerName)
	}
	state := framework.NewCycleState()
	o, err := w.filter(f, state, pod)
	if err != nil {
		return nil, err
	}
	result := object{"nodes": object{}, "scores": object{}, "best": []string{}}
	if o.prefilter != nil {
		result["prefilter"] = statusOf(o.prefilter)
	} else {
		nodes := object{}
		feasible := sets.New[string]()
		for _, n := range o.feasible {
			feasible.Insert(n.Node().Name)
		}
		all, _ := w.snapshot.NodeInfos().List()
		for _, n := range all {
			if !feasible.Has(n.Node().Name) {
				nodes[n.Node().Name] = statusOf(o.diagnosis.NodeToStatus.Get(n.Node().Name))
			}
		}
		result["nodes"] = nodes
		scores, best, _, err := w.score(f, state, pod, o.feasible)
		if err != nil {
			return nil, err
		}
		if feasible.Has(pod.Status.NominatedNodeName) {
			best = []string{pod.Status.NominatedNodeName}
		}
		result["scores"], result["best"] = scores, best
		if len(best) > 0 {
			if err := w.allocate(f, state, pod, best[0], result); err != nil {
				return nil, err
			}
		}
	}
	if len(o.feasible) == 0 {
		result["message"] = w.message(o, pod)
		if pod.Spec.NodeName == "" {
			result["preemption"] = w.preempt(f, state, pod, o)
			result["fullMessage"] = w.message(o, pod)
		}
	}
	return result, nil
}

// Reserve and PreBind of a pod with claims on one node, and the claims that are then reserved for it.
func (w *world) allocate(f framework.Framework, state fwk.CycleState, pod *v1.Pod, node string, result object) error {
	before, err := w.client.ResourceV1().ResourceClaims("").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	allocated := sets.New[string]()
	for i := range before.Items {
		if before.Items[i].Status.Allocation != nil {
			allocated.Insert(string(before.Items[i].UID))
		}
	}
	classes, err := w.client.ResourceV1().DeviceClasses().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(pod.Spec.ResourceClaims) == 0 && len(classes.Items) == 0 {
		return nil
	}
	if s := f.RunReservePluginsReserve(w.ctx, state, pod, node); !s.IsSuccess() {
		return s.AsError()
	}
	// No driver reports binding conditions here: what was written before the wait for them counts.
	if s := f.RunPreBindPlugins(w.ctx, state, pod, node); !s.IsSuccess() && !strings.Contains(s.Message(), "device binding timeout") {
		return s.AsError()
	}
	after, err := w.client.ResourceV1().ResourceClaims("").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	allocations := object{}
	for i := range after.Items {
		claim := &after.Items[i]
		for _, user := range claim.Status.ReservedFor {
			if user.UID == pod.UID {
				allocations[keyOf(claim)] = object{"allocation": plain(claim.Status.Allocation), "fresh": !allocated.Has(string(claim.UID))}
			}
		}
	}
	if len(allocations) > 0 {
		result["allocatedOn"], result["allocations"] = node, allocations
	}
	return nil
}

func keyOf(claim *resourcev1.ResourceClaim) string {
	if claim.Name == "" {
		return claim.Namespace + "/" + claim.GenerateName
	}
	return claim.Namespace + "/" + claim.Name
}

// Without what is random or depends on the time.
func plain(allocation *resourcev1.AllocationResult) *resourcev1.AllocationResult {
	result := allocation.DeepCopy()
	result.AllocationTimestamp = nil
	for i := range result.Devices.Results {
		result.Devices.Results[i].ShareID = nil
	}
	return result
}

func (w *world) score(f framework.Framework, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (object, []string, int64, error) {
	scores, best, highest := object{}, []string{}, int64(-1)
	if len(nodes) == 0 {
		return scores, best, 0, nil
	}
	if s := f.RunPreScorePlugins(w.ctx, state, pod, nodes); !s.IsSuccess() {
		return nil, nil, 0, s.AsError()
	}
	list, s := f.RunScorePlugins(w.ctx, state, pod, nodes)
	if !s.IsSuccess() {
		return nil, nil, 0, s.AsError()
	}
	for _, n := range list {
		entry := object{"total": n.TotalScore}
		for _, p := range n.Scores {
			entry[p.Name] = p.Score
		}
		scores[n.Name] = entry
		if n.TotalScore > highest {
			best, highest = []string{n.Name}, n.TotalScore
		} else if n.TotalScore == highest {
			best = append(best, n.Name)
		}
	}
	sort.Strings(best)
	return scores, best, highest, nil
}

func (w *world) preempt(f framework.Framework, state fwk.CycleState, pod *v1.Pod, o *outcome) object {
	result := object{"attempted": false, "code": "", "message": "", "nominatedNodes": []string{}, "victims": object{}, "pdbViolations": object{}}
	plugin := preemptionOf(f)
	victims, violations := object{}, object{}
	if plugin != nil {
		all, _ := w.snapshot.NodeInfos().List()
		for _, n := range all {
			if o.diagnosis.NodeToStatus.Get(n.Node().Name).Code() != fwk.Unschedulable {
				continue
			}
			pods, broken, s := plugin.SelectVictimsOnNode(w.ctx, state.Clone(), pod, n.Snapshot(), w.pdbs)
			if s.IsSuccess() && len(pods) > 0 {
				names := []string{}
				for _, p := range pods {
					names = append(names, p.Namespace+"/"+p.Name)
				}
				victims[n.Node().Name], violations[n.Node().Name] = names, broken
			}
		}
	}
	nomination, s := f.RunPostFilterPlugins(w.ctx, state, pod, o.diagnosis.NodeToStatus)
	result["code"], result["message"] = s.Code().String(), s.Message()
	o.diagnosis.PostFilterMsg = s.Message()
	result["attempted"] = plugin != nil && s.Code() != fwk.Error
	if s.IsSuccess() && nomination != nil && nomination.NominatingInfo != nil {
		result["nominatedNodes"] = []string{nomination.NominatedNodeName}
		result["victims"], result["pdbViolations"] = victims, violations
	}
	return result
}

// The framework does not hand out its plugins; the oracle looks them up where they are kept.
func preemptionOf(f framework.Framework) *defaultpreemption.DefaultPreemption {
	list := reflect.ValueOf(f).Elem().FieldByName("postFilterPlugins")
	list = reflect.NewAt(list.Type(), unsafe.Pointer(list.UnsafeAddr())).Elem()
	for i := 0; i < list.Len(); i++ {
		if plugin, ok := list.Index(i).Interface().(*defaultpreemption.DefaultPreemption); ok {
			return plugin
		}
	}
	return nil
}

func (w *world) sequence(raws []json.RawMessage) (any, error) {
	var results []object
	for _, raw := range raws {
		pod, err := decodePod(raw)
		if err != nil {
			return nil, err
		}
		f := w.sched.Profiles[pod.Spec.SchedulerName]
		if f == nil {
			return nil, fmt.Errorf("no profile %q", pod.Spec.SchedulerName)
		}
		state := framework.NewCycleState()
		o, err := w.filter(f, state, pod)
		if err != nil {
			return nil, err
		}
		step := object{"pod": pod.Namespace + "/" + pod.Name, "feasible": len(o.feasible), "best": []string{}}
		if len(o.feasible) == 0 {
			step["message"] = w.message(o, pod)
		} else {
			_, best, highest, err := w.score(f, state, pod, o.feasible)
			if err != nil {
				return nil, err
			}
			step["best"], step["chosen"], step["total"] = best, best[0], highest
			placed := pod.DeepCopy()
			placed.Spec.NodeName = best[0]
			placed.Status.Phase = v1.PodRunning
			if err := w.sched.Cache.AddPod(klog.Background(), placed); err != nil {
				return nil, err
			}
		}
		results = append(results, step)
	}
	return results, nil
}
