"""Families are known from names: those of libraries as public profiles show them, and look-alikes that are the user's own."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ncuroof import resources
from ncuroof.errors import ProfileError
from ncuroof.metrics.families import USER, families_by_lines, families_of, launched_by_pytorch, lineage, load_families
from ncuroof.tables import LINES

NAMES = {
    "pytorch": [
        "void at::native::<unnamed>::GammaBetaBackwardCUDAKernelTemplate<float, float, (unsigned int)32, "
        "(unsigned int)1, (unsigned int)32, (bool)1, (bool)1, (bool)0>(long, long)",  # leaves partial sums: rows set its grid
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, std::array<char *, 1>>(int)",
        "void at::native::(anonymous namespace)::cunn_SoftMaxForward<(int)4, float, float, float>(float *, const float *, int)",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, (int)8, (bool)1>(float *, int)",
        "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSortPolicy<float, long>>(T1)",
        "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<int>, int *, at::native::SumOp<int>>(T1 *)",
        "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float>>(T1 *, const T1 *, unsigned int)",
        "void multi_tensor_apply_kernel<TensorListMetadata<(int)2>, ScaleFunctor<float, float>, float>(long, int volatile *, T1)",
    ],
    "pytorch_foreach": [
        "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorListMetadata<(int)1>, "
        "at::native::<unnamed>::BinaryOpScalarFunctor<float, (int)1, (int)1, (int)0>, std::multiplies<float>, float>(T1, T2)",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<1>, "
        "at::native::(anonymous namespace)::LpNormFunctor<float, (at::native::NormType)1, float, 1, 1, 0>>(T1, T2)",
    ],
    "inductor": [
        "triton_poi_fused_mul_silu_1", "triton_red_fused__softmax_2", "triton_per_fused_sum_0()", "triton_tem_fused_mm_0",
        "triton_for_fused_0", "triton_spl_fused_cumsum_1", "triton_poi_fused_add_0d1d2d3de",
    ],
    "triton": [
        "_attn_fwd_0d1d2d34d5d6de",
        "triton_matmul", "triton_red_black_gauss_seidel", "triton_softmax", "triton_gemm_dot_kernel",
    ],
    "generated": [
        "loop_add_fusion", "loop_fusion_12", "loop_dynamic_update_slice_fusion_3", "loop_select_subtract_fusion",
        "input_reduce_fusion_92", "input_concatenate_fusion()", "wrapped_transpose", "wrapped_convert_4",
        "gemm_fusion_dot_76_0", "gemm_fusion_dot_general_0", "triton_softmax_3_0", "triton_gemm_dot_14_0",
        "__myl_MoveMulAdd_0x1f0ed1bba5e4e83f1f9ef19cbe6d8c1e", "__mye8037_gemm_mha_v2",
        "_gemm_mha_v2_0x7d506f90cde376753e5ca2590e8e79f6", "generatedNativePointwise",
        "void genericReformat::copyVectorizedKernel<double, float, __half, (bool)1, (bool)0, (int)1>(unsigned int, unsigned int)",
        "void cuInt8::nchwToNhwcKernel<float>(int, int, int, int, int, int, int, int, bool, const T1 *, T1 *)",
        "void nvinfer1::plugin::scaleShiftChannelsInplaceKernel<float, (int)512>(float *, int, int, const float *, const float *)",
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize64x64x64_stage4_kernel_trt",
        "trt_ampere_h16816cudnn_128x64_ldg8_relu_exp_small_nhwc_tn_v1",
    ],
    "open_library": [
        "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16 *, const c10::BFloat16 *, const c10::BFloat16 *, float, int, int)",
        "void tensorrt_llm::kernels::generalLayerNorm<__half, __half, float, true>(int)",
        "void flashinfer::norm::RMSNormKernel<(unsigned int)8, __nv_bfloat16>(T2 *, T2 *, T2 *, unsigned int, unsigned int)",
        "void onnxruntime::cuda::_Fill<float, (int)256, (int)4>(T1 *, T1, int)",
        "void tensorflow::functor::BiasNHWCKernel<float>(int, const T1 *, const T1 *, T1 *, int)",
        "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<const Eigen::TensorAssignOp<float>>, int>(T1, T2)",
        "void cudf::detail::valid_if_kernel<thrust::counting_iterator<int>, cudf::detail::Pred, (int)256>(unsigned int *, T1, int)",
        "void raft::matrix::detail::select::radix::radix_topk_kernel<float, int, (int)11, (int)512>(const T1 *)",
    ],
    "flash_attention": [
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4>>(Flash_fwd_params)",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128>>(Flash_fwd_params)",
        "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<(int)64, (int)128>>(Flash_bwd_params)",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::Mainloop<(int)2>>>>(T1)",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
        "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64x64_4x1x1_cga1x1x1_kernel0_0",
    ],
    "nccl": [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm *, unsigned long, ncclWork *)",
        "ncclBroadcastRingLLKernel_copy_i8(ncclColl)",
    ],
    "cudnn": [
        "sm80_xmma_fprop_implicit_gemm_indexed_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage3_warpsize2x2x1_g1_"
        "tensor16x8x16_execute_kernel__5x_cudnn",
        "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_kernel_cudnn",
        "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, (bool)0, (bool)1, (cudnnKernelDataType_t)0>(T1)",
        "void nchwToNhwcKernel<__half, __half, float, true, true, (cudnnKernelDataType_t)0>(int, int, int, int)",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, (int)512, (bool)1, (int)1>(cudnnTensorStruct, const T1 *)",
        "void implicit_convolve_sgemm<float, float, (int)1024, (int)5, (int)5, (int)3>(int, int, int, const T1 *)",
        "void fft2d_c2r_32x32<float, (bool)0, (bool)0, (unsigned int)0>(T1 *, const float2 *, cudnn::reduced_divisor)",
        "maxwell_scudnn_winograd_128x128_ldg1_ldg4_tile148n_nt",
        "_5x_cudnn_volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
        "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64_16x10_nhwc_align4>(T1::Params)",
        "cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise_knob_1_kernel0_0",
    ],
    "cublas": [
        "void cutlass::Kernel<cutlass_80_simt_sgemm_128x256_8x4_tt_align1>(T1::Params)",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x4_tn_align8>(T1::Params)",
        "Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",  # as older versions print it
        "cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8",
        "cutlass_75_wmma_tensorop_s161616gemm_bf16_32x32_128x2_nn_align8",
        "ampere_sgemm_128x64_nn",
        "ampere_sgemm_128x64_nn()",
        "volta_h884gemm_256x64_ldg8_nn",
        "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
        "maxwell_sgemmBatched_64x64_raggedMn_nn",
        "ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_relu_f2f_stages_64x6_tn",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_execute_kernel_cublas",
        "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "nvjet_sm100_tst_64x32_64x16_2x1_2cta_v_bz_TNT",
        "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN()",
        "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int, float, __half>(cublasLt::cublasSplitKParams<float>, const T4 *)",
        "void splitKreduce_kernel<(int)32, (int)16, int, float, float, float>(cublasSplitKParams<float>, const T4 *)",
        "void dot_kernel<float, (int)128, (int)0, cublasDotParams<cublasGemvTensor<const float>>>(T4)",
        "void reduce_1Block_kernel<float, (int)128, (int)7, cublasGemvTensorStridedBatched<float>, "
        "cublasGemvTensorStridedBatched<float>>(const T1 *, T1, T4, int)",
    ],
    "pytorch_fixed_grid": [
        "void at::native::<unnamed>::GammaBetaBackwardCUDAKernelTemplate<float, float, (unsigned int)32, "
        "(unsigned int)32, (unsigned int)256, (bool)0, (bool)1, (bool)0>(long, long)",
        "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(T1 *, T1 *)",
        "void at::native::<unnamed>::nll_loss_backward_reduce_cuda_kernel_2d<float, long>(T1 *, const T1 *, const T2 *)",
    ],
    "pytorch_optimizer": [
        "void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::FusedOptimizerTensorListMetadata<(int)4>, "
        "at::native::<unnamed>::FusedAdamMathFunctor<float, (int)4, (at::native::ADAM_MODE)1, (bool)0>>(T1, T2)",
        "void multi_tensor_apply_kernel<TensorListMetadata<(int)4>, AdamFunctor<float>, float>(long, int volatile *, T1)",  # Apex
    ],
    "cublas_gemv": [
        "void gemvNSP_kernel<float, float, float, float, (int)1, (int)32, (int)4, (int)1024>(cublasGemvParamsEx<int, float>)",
        "void gemv2T_kernel_val<int, int, float, float, float, float, (int)128, (int)16>(T13, T5, T5)",
        "std::enable_if<true, void>::type internal::gemvx::kernel<int, int, double, double, double, double, (bool)0>(T13)",
    ],
    "reference_check": [
        "void ReferenceGemm_kernel(int, int, int, float, const float *, int)",
        "void cutlass::reference::device::kernel::GemmComplex<cutlass::complex<float>>(T1)",
        "reference_attention_kernel(float *, const float *)",
    ],
    "cutlass": [
        "void cutlass::Kernel2<cutlass_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x4_tn_align8>(T1::Params)",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>>>(T1::Params)",
        "cutlass_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8",
        "cutlass_sm80_tensorop_f16_s16x8x16dgrad_optimized_f16_128x128_32x4_nhwc_align8",
        "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnn_align8_warpspecialized",
    ],
    "merge_sort": ["void cub::CUB_200200_NS::DeviceMergeSortBlockSortKernel<Policy, Item *, MyLess>(T2)"],
    "functor": [
        "typeinfo name for MatrixAdd", "void RAJA::policy::cuda::impl::forallp_cuda_kernel<RAJA::cuda_exec<256>, Daxpy>(T2)",
    ],
    "decode_attention": ["void vllm::paged_attention_v2_kernel<unsigned short, unsigned char, 128>(float *)"],
    "cub": [
        "void cub::DeviceScanKernel<cub::DeviceScanPolicy<float>::Policy600, float *, float *>(T2, T3)",
        "void cub::CUB_200200_520_NS::DeviceReduceKernel<cub::CUB_200200_520_NS::DeviceReducePolicy<float>>(T1)",
        "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<long>, long>(T1, T2)",
    ],
    "openacc_runtime": ["__pgi_uacc_cuda_fill", "_21______src_cuda_fill_c___pgi_uacc_cuda_fill_44_gpu"],
    "library": [
        "void cusparse::csrmv_v3_kernel<std::integral_constant<bool, (bool)0>, int, int, float>(cusparse::KernelCoeffs<float>)",
        "void regular_fft<(unsigned int)256, EPT<(unsigned int)16>, CONSTANT>(kernel_arguments_t<unsigned int>)",
        "void generate_seed_pseudo<rng_config<curandStateXORWOW, (curandOrdering)101>>(unsigned long long, curandStateXORWOW *)",
        "void composite_2way_fft_c2r<(unsigned int)72, (unsigned int)8, (unsigned int)16>(kernel_arguments_t<unsigned int>)",
        "void getrf_semiwarp<double, double, (int)2, (int)3, (bool)1>(int, const T2 *, int, T2 *, int *, int)",
        "void potrf_alg2_cta_upper<double2, double, (int)32>(int, int, T1 *, unsigned long, int *)",
        "void geqr2_smem_domino_fast<float, float, (int)8, (int)512>(int, int, T1 *, unsigned long, T1 *, int)",
        "void ormtr_gemv_c<float, (int)4>(int, int, const T1 *, unsigned long)",
    ],
    # Near misses: words of a library in a name, or its types among the arguments, of a kernel that is the user's own.
    USER: [
        "sigma_gpp_gpu_34",  # compiled from a program's OpenACC
        "matmul(float *, float *, int)",
        "void transpose<float>(T1 *)",
        "my_gemm(float *, float *)",
        "sgemm_128x128x8_kernel(const float *, const float *, float *, unsigned int)",
        "ampere_gemm_128x128(const float *, const float *, float *)",
        "cutlass_like(float *)",
        "void cutlass_like_gemm<(int)128>(float *)",
        "void my_kernel<cutlass::half_t, cute::Layout<cute::tuple<int, int>>>(const T1 *, T1 *)",
        "my_cublas_gemm(float *)",
        "void my_cudnn::forward<float>(T1 *)",
        "void scan<thrust::plus<float>>(thrust::device_ptr<float>, int)",
        "my_nccl_ring(float *)",
        "flash_attention_kernel(const float *, const float *, const float *, float *)",
        "void flash_attn_fwd<(int)64>(const __half *)",
        "flash_fwd_kernel(const float *, float *, int)",
        "winograd(const float *, float *)",
        "splitKreduce_kernel(float *, int)",
        "gemv2(const double *, const double *, double *)",
        "vector_fft(float2 *, int)",
        "init_rng(curandStateXORWOW *, unsigned long long, int)",
        "triton_like(float *)",
        "my_fusion",
        "loop_fusion_step",
        "loop_fusion(float *, int)",
        "input_lidar_fusion",
        "wrapped_solver",
        "gemm_fusion_of_mine",
        "my_genericReformat(float *)",
        "void mine::vllm::norm<float>(T1 *)",
        "my_multi_tensor_apply_kernel(float *)",
        "getrf_semiwarp(double *, int)",
        "compute_forces_b3e2f1a9_cuda_kernel_forward",
        "batched::native(float *)",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("expected", "name"), [(family, name) for family, names in NAMES.items() for name in names])
def test_a_family_is_told_from_the_demangled_name(expected: str, name: str) -> None:
    assert families_of(pl.Series([name])).item() == expected


def test_every_family_has_names_to_tell_it_by_and_a_reason() -> None:
    assert NAMES.keys() == {*load_families(), USER}
    assert all(family.remark for family in load_families().values())


def test_a_name_that_is_not_known_is_no_librarys() -> None:
    assert families_of(pl.Series([None, ""], dtype=pl.String)).to_list() == [USER, USER]


def test_every_launch_has_its_family_in_order() -> None:
    names = pl.Series([NAMES["nccl"][0], NAMES["cub"][0], NAMES["nccl"][0], "mine"])
    assert families_of(names).to_list() == ["nccl", "cub", "nccl", USER]


def test_the_line_of_parents_ends_before_the_user() -> None:
    assert [family.name for family in lineage("cublas")] == ["cublas", "library"]
    assert [family.name for family in lineage("triton")] == ["triton"]
    assert lineage(USER) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[family]]\nname = "a"\ntitle = "A"\nparent = "b"\npattern = "x"\nremark = "y"\n', "parent 'b' of 'a'"),
        ('[[family]]\nname = "a"\ntitle = "A"\nparent = "a"\npattern = "x"\nremark = "y"\n', "parent 'a' of 'a'"),
        ('[[family]]\nname = "a"\ntitle = "A"\nparent = "user"\nremark = "y"\n', r"families\.toml: .*pattern"),
        ('[[other]]\nname = "a"\n', r"families\.toml: .*family"),
    ],
)
def test_a_malformed_profile_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (tmp_path / "families.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(resources, "folder", lambda _: tmp_path)
    with pytest.raises(ProfileError, match=message):
        load_families.__wrapped__()


def test_kernels_of_python_files_are_tritons_where_their_name_is_an_identifier() -> None:
    names = [
        "softmax_kernel",
        "softmax_kernel",
        "add",
        "cudapy::add(Array<float>)",
        "kernel_cutlass_gemm",
        "scale()",
        "triton_poi_fused_add_0",
        "compute_forces_b3e2f1a9_cuda_kernel_forward",
        "integrate_cuda_kernel_backward()",
    ]
    kernels = pl.DataFrame({"id": range(9), "name": names}, schema={"id": pl.UInt32, "name": pl.String})
    kernels = kernels.with_columns(families_of(kernels["name"]).alias("family"))
    files = ["softmax.py", None, "add.cu", "add.py", "gemm.py", "standard.py", "add.py", "forces.py", "forces.py"]
    rows = [{"id": number, "file": file} for number, file in enumerate(files) if file]
    lines = pl.DataFrame(rows, schema={"id": pl.UInt32, "file": pl.String})
    found = families_by_lines(kernels, lines).to_list()
    # of the second launch no line was read; the last two are Warp's
    assert found == ["triton", "triton", USER, USER, USER, "triton", "inductor", USER, USER]
    nothing = families_by_lines(kernels, pl.DataFrame(schema=LINES)).to_list()
    assert nothing == [USER] * 6 + ["inductor", USER, USER]


def _process(number: int, *launches: tuple[str, list[str] | None]) -> list[dict[str, object]]:
    return [{"source": 0, "process_id": number, "family": family, "nvtx": nvtx} for family, nvtx in launches]


def _from_pytorch(rows: list[dict[str, object]]) -> list[bool]:
    schema = {"source": pl.UInt32, "process_id": pl.Int64, "family": pl.String, "nvtx": pl.List(pl.String)}
    return launched_by_pytorch(pl.DataFrame(rows, schema=schema)).to_list()


def test_pytorch_launches_libraries_in_processes_that_run_its_kernels() -> None:
    rows = _process(1, ("cublas", None), ("pytorch_foreach", [])) + _process(2, ("cublas", []), ("triton", None))
    rows += _process(3, ("cudnn", None), ("inductor", None))
    assert _from_pytorch(rows) == [True, True, False, False, True, True]


def test_ranges_of_operators_tell_what_pytorch_launches_where_there_are_any() -> None:
    operator = ["model", "AddmmBackward0", "aten::mm, sizes = [[4, 8], [8, 2]]"]
    rows = _process(
        1, ("cublas", operator), ("cublas", ["model", "my_extension"]), ("pytorch", operator), ("cublas", None)
    )
    assert _from_pytorch(rows) == [True, False, True, False]
    assert _from_pytorch(_process(1, ("cublas", ["my aten::mm"]))) == [False]
